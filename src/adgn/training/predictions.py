"""The predictions of a run, batch by batch or as a file."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from adgn.data.packed import offsets
from adgn.nn.network import Level
from adgn.training.batches import LabelledBatch, Split
from adgn.training.checkpoint import OTHER_OUT, write_atomically
from adgn.training.errors import ConfigError
from adgn.training.saved_runs import open_run

_FORMATS = (".csv", ".safetensors")
_COLUMNS = ("graph", "node", "prediction", "target", "probability")


def predict(
    run_dir: str | Path, splits: Sequence[Split] | None = None, *, device: str | None = None
) -> Iterator[tuple[Split, Mapping[str, Tensor]]]:
    """The predictions of a run's best weights, batch by batch.

    Args:
        run_dir: A run directory, of a finished run or of one that has begun.
        splits: `"train"`, `"val"` or `"test"`; `None`: all.
        device: Where to compute; `None`: where the run did.

    Yields:
        The split and, for the rows of a batch: `graph`, the number of the graph within its split,
        where the task has many; `node`, the number of the node within its graph, where nodes have
        predictions; `prediction` (values, or classes), `target` (−1 for an unknown class),
        `output` (what the network gave) and, of classes, `probability`, `[rows, classes]`.

    Example:
        >>> import tempfile, adgn
        >>> settings = {"task": {"distance": 3, "test": 8}, "loop": {"max_epochs": 1}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = adgn.train("graph-transfer", run_dir=f"{folder}/run", **settings)
        ...     ((split, batch),) = predict(f"{folder}/run", ["test"])
        >>> split, list(batch), batch["prediction"].shape
        ('test', ['graph', 'node', 'prediction', 'target', 'output'], torch.Size([8, 1]))
        >>> batch["graph"][:3].tolist(), batch["node"][:3].tolist()  # read at the end of each line
        ([0, 1, 2], [3, 3, 3])
    """
    prepared = open_run(run_dir, device=device)
    objective, level = prepared.trainer.objective, prepared.data.level
    for split in splits or list(prepared.data.sources):
        graphs = 0
        for output, batch in prepared.trainer.outputs(split, prepared.source(split)):
            prediction = objective.answer(output)
            rows = {
                **_numbers(batch, level, graphs),
                "prediction": prediction,
                "target": batch.y.view_as(prediction),
                "output": output,
            }
            if objective.probability is not None:
                rows["probability"] = objective.probability(output)
            yield split, rows
            graphs += batch.num_graphs


def _numbers(batch: LabelledBatch, level: Level, graphs: int) -> dict[str, Tensor]:
    """Which graph and node each row of a batch is about; `graphs` came before it."""
    if level == "graph":
        return {"graph": graphs + torch.arange(batch.num_graphs, device=batch.x.device)}
    rows = (
        torch.arange(batch.x.size(0), device=batch.x.device) if batch.rows is None else batch.rows
    )
    node = rows if batch.node_id is None else batch.node_id[rows]
    if batch.batch is None:
        return {"node": node}
    graph = batch.batch[rows]
    if batch.node_id is None:
        node = rows - offsets(torch.bincount(batch.batch))[graph]
    return {"graph": graphs + graph, "node": node}


def write_predictions(run_dir: str | Path, out: str | Path, *, device: str | None = None) -> int:
    """Writes the predictions of a run's best weights for every split; returns how many there are.

    A CSV file has a row per node or graph of a split, in the order of the data: `split`, `graph`
    and `node` as in [`predict`][adgn.training.predict], `prediction`, `target`, empty where a class
    is unknown, and for classes `probability_0` and so on; several values are `prediction_0`, …,
    `target_0`, …. A safetensors file has the tensors of `predict` as `<split>.prediction`, ….
    """
    path = Path(out)
    if path.suffix not in _FORMATS:
        raise ConfigError(f"out={str(out)!r} has no known ending; use {' or '.join(_FORMATS)}")
    if not path.parent.is_dir():
        raise ConfigError(f"out={str(out)!r} is in a folder that does not exist: {path.parent}")
    batches: dict[str, list[Mapping[str, Tensor]]] = {}
    for split, batch in predict(run_dir, device=device):
        batches.setdefault(split, []).append({name: part.cpu() for name, part in batch.items()})
    splits = {
        split: {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        for split, parts in batches.items()
    }
    if path.suffix == ".safetensors":
        named = {f"{s}.{name}": t for s, tensors in splits.items() for name, t in tensors.items()}
        content = save({name: tensor.contiguous() for name, tensor in named.items()})
    else:
        content = csv_text(splits).encode()
    write_atomically(path, content, OTHER_OUT)
    return sum(len(tensors["target"]) for tensors in splits.values())


def csv_text(splits: Mapping[str, Mapping[str, Tensor]]) -> str:
    """The tensors of each split as rows of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for number, (split, tensors) in enumerate(splits.items()):
        columns: dict[str, list[Any]] = {}
        for name in _COLUMNS:
            if name in tensors:
                values = tensors[name].view(len(tensors[name]), -1).t().tolist()
                several = len(values) > 1 or name == "probability"
                for place, column in enumerate(values):
                    columns[f"{name}_{place}" if several else name] = column
        if "probability" in tensors:  # targets are classes
            columns["target"] = ["" if label == -1 else label for label in columns["target"]]
        if number == 0:
            writer.writerow(["split", *columns])
        for row in zip(*columns.values(), strict=True):
            writer.writerow([split, *row])
    return text.getvalue()
