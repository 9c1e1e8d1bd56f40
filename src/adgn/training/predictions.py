"""The predictions of a run, batch by batch or as a file."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from adgn.training.api import open_run
from adgn.training.batches import Split
from adgn.training.errors import ConfigError
from adgn.training.files import OTHER_OUT, write_atomically

__all__ = ["predict", "write_predictions"]

_FORMATS = (".csv", ".safetensors")


def predict(
    run_dir: str | Path, splits: Sequence[Split] | None = None, *, device: str | None = None
) -> Iterator[tuple[Split, Mapping[str, Tensor]]]:
    """The predictions of a run's best weights, batch by batch.

    Args:
        run_dir: A run directory, of a finished run or of one that has begun.
        splits: `"train"`, `"val"` or `"test"`; `None`: all.
        device: Where to compute; `None`: where the run did.

    Yields:
        The split and, for the scored rows of a batch, `prediction` (values, or classes), `output`
        (what the network gave) and `target`.

    Example:
        >>> import tempfile, adgn
        >>> task = {"distance": 3, "train": 16, "val": 8, "test": 8}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = adgn.train(
        ...         "graph-transfer", task=task, loop={"max_epochs": 2}, run_dir=f"{folder}/run"
        ...     )
        ...     ((split, batch),) = predict(f"{folder}/run", ["test"])
        >>> split, sorted(batch), batch["prediction"].shape
        ('test', ['output', 'prediction', 'target'], torch.Size([8, 1]))
    """
    prepared = open_run(run_dir, device=device)
    answer = prepared.trainer.objective.answer
    for split in splits or list(prepared.data.sources):
        for output, batch in prepared.trainer.outputs(split, prepared.source(split)):
            yield split, {"prediction": answer(output), "output": output, "target": batch.y}


def write_predictions(run_dir: str | Path, out: str | Path, *, device: str | None = None) -> int:
    """Writes the predictions of a run's best weights for every split.

    A CSV file has a row per scored node or graph, in the order of the data: `split`, `row` (its
    number within the split), `prediction`, `target`. A safetensors file has for each split the
    tensors `<split>.prediction`, `<split>.output` and `<split>.target`.

    Args:
        run_dir: A run directory.
        out: The file.
        device: Where to compute; `None`: where the run did.

    Returns:
        How many predictions were written.
    """
    path = Path(out)
    if path.suffix not in _FORMATS:
        raise ConfigError(f"out={str(out)!r} has no known ending; use {' or '.join(_FORMATS)}")
    if not path.parent.is_dir():
        raise ConfigError(f"out={str(out)!r} is in a folder that does not exist: {path.parent}")
    parts: dict[str, list[torch.Tensor]] = {}
    for split, batch in predict(run_dir, device=device):
        for name, tensor in batch.items():
            parts.setdefault(f"{split}.{name}", []).append(tensor.detach().cpu())
    tensors = {name: torch.cat(pieces) for name, pieces in parts.items()}
    if path.suffix == ".safetensors":
        content = save({name: t.contiguous() for name, t in tensors.items()})
    else:
        content = _csv(tensors).encode()
    write_atomically(path, content, OTHER_OUT)
    return sum(t.size(0) for name, t in tensors.items() if name.endswith(".target"))


def _csv(tensors: dict[str, torch.Tensor]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["split", "row", "prediction", "target"])
    splits = [name.removesuffix(".target") for name in tensors if name.endswith(".target")]
    for split in splits:
        predictions = tensors[f"{split}.prediction"].flatten().tolist()
        targets = tensors[f"{split}.target"].flatten().tolist()
        for row, pair in enumerate(zip(predictions, targets, strict=True)):
            writer.writerow([split, row, *pair])
    return text.getvalue()
