import torch

from adgn.training import prepare, resolve_config, shared_data, train

TINY = {
    "task": {"name": "graph-transfer", "distance": 2, "train": 12, "val": 6, "test": 6},
    "loop": {"max_epochs": 2, "batch_size": 5},
}


def test_runs_share_graphs_and_not_their_order():
    with shared_data():
        first = prepare(resolve_config(TINY, {"seed": 1}))
        second = prepare(resolve_config(TINY, {"seed": 2}))
    assert first.data.train.graphs is second.data.train.graphs
    assert first.data.sources["val"] is second.data.sources["val"]
    orders = [[b.y for b in run.data.train.batches(0)] for run in (first, second)]
    assert not torch.equal(torch.cat(orders[0]), torch.cat(orders[1]))


def test_sharing_changes_no_score():
    alone = [train(TINY, seed=seed).scores for seed in (1, 2)]
    with shared_data():
        shared = [train(TINY, seed=seed).scores for seed in (1, 2)]
    assert shared == alone


def test_other_settings_are_other_data():
    with shared_data():
        first = prepare(resolve_config(TINY))
        other = prepare(resolve_config(TINY, {"task": {"distance": 3}}))
        again = prepare(resolve_config(TINY))
    assert first.data.sources["val"] is not other.data.sources["val"]
    assert first.data.sources["val"] is again.data.sources["val"]
    assert prepare(resolve_config(TINY)).data.sources["val"] is not first.data.sources["val"]


def test_splits_share_one_graph(data_root):
    texas = resolve_config("texas", {"task": {"root": str(data_root)}})
    with shared_data():
        runs = [
            prepare(texas.model_copy(update={"task": replace_split(texas.task, split)}))
            for split in (0, 1)
        ]
    first, second = (next(run.data.train.batches(0)) for run in runs)
    assert first.x is second.x
    assert first.graph is second.graph
    assert not torch.equal(first.rows, second.rows)


def replace_split(task, split):
    return task.model_copy(update={"split": split})


def test_the_test_split_can_be_left_alone():
    result = train(TINY, evaluate_test=False)
    assert set(result.scores) == {"train", "val"}
    assert result.metric == "log10_mse"
    assert result.to_dict()["scores"] == result.scores
