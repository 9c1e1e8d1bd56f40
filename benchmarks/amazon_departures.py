"""What dropout does to A-DGN on Amazon Photo and Computers, whose published values had none.

    python benchmarks/dropout_accuracy.py [--only photo] [--out FILE]

A-DGN with GCN's operator, 5 layers of 64 units, ε = 1, γ = 0.1, learning rate 0.01, without dropout
as the paper's protocol has it and with dropout 0.8 on the first and last states; on the task's five
splits, one initialisation each, early stopping as the task has it. Results are kept after every
run, and a second call does what is missing.
"""

from kept_runs import arguments_of, do_missing, every, trained

from adgn.training import TrainConfig, resolve_config

MODEL = {"phi": "gcn", "num_layers": 5, "hidden_channels": 64, "epsilon": 1.0, "gamma": 0.1}
DROPOUTS = (0.0, 0.8)


def config(task: str, dropout: float, split: int) -> TrainConfig:
    """The configuration of one training."""
    model = {**MODEL, "dropout": dropout}
    settings = {"model": model, "optimizer": {"lr": 0.01}, "task": {"split": split}}
    return resolve_config(task, settings)


if __name__ == "__main__":
    chosen = arguments_of(__doc__, "dropout-accuracy.json", "photo,computers", 5)
    jobs = every(task=chosen.only, split=range(chosen.splits), dropout=DROPOUTS)
    do_missing(chosen.out, jobs, lambda **job: trained(config(**job)), model=MODEL)
