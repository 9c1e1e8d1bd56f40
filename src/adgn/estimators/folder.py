"""A model as a folder: weights as safetensors, everything else as JSON, a model card.

model.safetensors   the weights of all members
config.json         parameters, members, what was decided about columns and target, versions
scores.json         validation and test scores, and every model that was tried
README.md           a model card
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from adgn._util.environment import versions
from adgn._util.files import finite_or_none, parse_json, read_file, write_file
from adgn._version import __version__
from adgn.data import Preprocessing, TargetEncoder
from adgn.data.own.inputs import direction_read
from adgn.estimators.card import model_card
from adgn.estimators.members import member_from
from adgn.estimators.rows import plain
from adgn.training.checkpoint import sha256
from adgn.training.quality import Quality
from adgn.transforms import resolve_transforms

if TYPE_CHECKING:
    from adgn.estimators.base import GraphEstimator

# Raised when folders of an older version can no longer be read as they are.
FORMAT = 1
_CONFIG, _WEIGHTS, _SCORES, _CARD = "config.json", "model.safetensors", "scores.json", "README.md"
# What commands put beside a model: `adgn fit` the first three, `adgn explain` the pictures.
FIT, PREDICTIONS, PAGE = "fit.json", "predictions.csv", "report.html"
BESIDE_MODELS = (FIT, PREDICTIONS, PAGE, "explain-*.png")


class ModelFolderError(ValueError):
    """A folder does not hold a model that can be read."""


def save_model(estimator: "GraphEstimator", path: Path) -> Path:
    """Writes a fitted estimator into a folder."""
    tensors = {
        f"{number}.{name}": tensor.detach().cpu().contiguous().clone()
        for number, member in enumerate(estimator.members_)
        for name, tensor in member.model.tensors().items()
    }
    weights = save_tensors(tensors)
    parameters = estimator.get_params(deep=False)
    parameters.pop("graph")
    given = resolve_transforms(parameters["transform"])
    parameters["transform"] = [transform.settings() for transform in given] or None
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None
    if isinstance(parameters.get("class_weight"), Mapping):  # JSON has no numbers as keys
        parameters["class_weight"] = list(parameters["class_weight"].items())
    quality = estimator.quality_
    config = {
        "format": FORMAT,
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "members": [member.to_json() for member in estimator.members_],
        "quality": {
            "metric": quality.metric,
            "classes": quality.classes,
        },
        "preprocessing": estimator.preprocessing_.to_json(),
        "target": estimator.encoder_.to_json(),
        "reading": estimator.reading_,
        "weights_sha256": sha256(weights),
        "versions": {"adgn": __version__, **versions("torch", "numpy", "scikit-learn")},
    }
    scores = {
        "metric": quality.metric,
        "validation": estimator.validation_scores_,
        "test": estimator.test_scores_,
        "parts": dict(zip(("train", "valid", "test"), estimator.sizes_, strict=True)),
        "split": estimator.split_rule_,
        "data": estimator.data_,
        "notes": list(estimator.notes_),
        "seconds": round(estimator.seconds_, 3),
        "tried": estimator.tried(),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        for pattern in BESIDE_MODELS:  # they are about the model that was there
            for old in path.glob(pattern):
                old.unlink()
        # The configuration last: with it the folder is a model.
        write_file(path / _WEIGHTS, weights)
        write_file(path / _SCORES, _json(scores))
        write_file(path / _CARD, model_card(estimator).encode())
        write_file(path / _CONFIG, _json(config))
    except OSError as error:
        raise ModelFolderError(
            f"the model cannot be written to {path}: {error.strerror or error}; give another folder"
        ) from error
    return path


def load(path: str | Path) -> "GraphEstimator":
    """The estimator in a folder that `save` wrote; nothing is unpickled.

    It predicts on graphs that are given to it; the graph that it was trained on is not in the
    folder.

    Args:
        path: The folder.

    Raises:
        ModelFolderError: A file is missing, damaged, or of a newer version.

    Example:
        >>> import tempfile, adgn
        >>> graph = adgn.Graph.from_arrays(
        ...     [[float(n % 2)] for n in range(20)], [range(19), range(1, 20)], y=[0, 1] * 10
        ... )
        >>> model = adgn.NodeClassifier(model="mlp", settings={"loop": {"max_epochs": 20}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = model.fit(graph).save(folder)
        ...     again = adgn.load(path)
        >>> (again.predict(graph) == model.predict()).all()
        np.True_
    """
    from adgn.estimators import ESTIMATORS

    folder = Path(path)
    config = _read_json(folder / _CONFIG)
    written = config.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise ModelFolderError(
            f"{folder} was written by a newer adgn (format {written}); this is {__version__}, "
            f"which reads formats up to {FORMAT}: upgrade adgn"
        )
    data = _read(folder / _WEIGHTS)
    scores = _read_json(folder / _SCORES)
    try:
        if sha256(data) != config["weights_sha256"]:
            raise ValueError(f"{_WEIGHTS} does not have the checksum that it was written with")
        tensors = load_tensors(data)
        parameters = dict(config["parameters"])
        if isinstance(parameters.get("class_weight"), list):
            parameters["class_weight"] = dict(parameters["class_weight"])
        if parameters.get("direction") is not None:
            parameters["direction"] = direction_read(parameters["direction"])
        estimator: GraphEstimator = ESTIMATORS[config["estimator"]](**parameters)
        estimator.members_ = []
        for number, about in enumerate(config["members"]):
            start = f"{number}."
            own = {n.removeprefix(start): t for n, t in tensors.items() if n.startswith(start)}
            estimator.members_.append(member_from(about, own))
        estimator.preprocessing_ = Preprocessing.from_json(config["preprocessing"])
        estimator.encoder_ = TargetEncoder.from_json(config["target"])
        estimator.quality_ = Quality(config["quality"]["metric"], config["quality"]["classes"])
        estimator.reading_ = config.get("reading", {})
        estimator.n_features_in_ = len(estimator.preprocessing_.names)
        estimator.validation_scores_, estimator.test_scores_ = (
            {name: math.nan if value is None else value for name, value in scores[part].items()}
            for part in ("validation", "test")
        )
        estimator.sizes_ = tuple(scores["parts"].values())
        estimator.split_rule_, estimator.data_ = scores["split"], scores["data"]
        estimator.notes_, estimator.seconds_ = tuple(scores["notes"]), scores["seconds"]
        estimator._tried = scores["tried"]
        if estimator.kind == "classification":
            estimator.classes_ = np.asarray(estimator.encoder_.classes)
    except (KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelFolderError(
            f"{folder} is damaged ({type(error).__name__}: {error}); put the original files back"
        ) from error
    return estimator


def _json(content: Any) -> bytes:
    text = json.dumps(finite_or_none(plain(content)), indent=2, allow_nan=False)
    return text.encode() + b"\n"


def _read(path: Path) -> bytes:
    try:
        return read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFolderError(
            f"{path.parent} is no model folder: it has no {path.name}; `adgn fit` and "
            "estimator.save(path) write one"
        ) from None
    except OSError as error:
        raise ModelFolderError(f"{path} cannot be read: {error.strerror or error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(_read(path))
    except ModelFolderError:
        raise
    except ValueError as error:
        raise ModelFolderError(f"{path} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path} is damaged: it holds no settings")
    return content
