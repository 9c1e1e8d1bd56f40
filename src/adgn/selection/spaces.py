"""What model selection chooses from: lists of values for settings of a training configuration."""

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adgn._util.suggestions import unknown_name
from adgn.nn import model_spec
from adgn.selection.errors import SpaceError
from adgn.tasks.published_settings import authors_space, has_authors_space
from adgn.tasks.spaces import SearchSpace, compact_space, paper_spaces
from adgn.training import ConfigError, resolve_config
from adgn.training.tasks import task_entry
from adgn.transforms import resolve_transforms

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TRANSFORM = "task.transform"
# A study compares configurations of one problem: what changes the problem is not chosen from. A
# transform of the graph that keeps all nodes does not.
_NOT_CHOSEN = {
    "task": "it would change the problem; start a study per task",
    "seed": "seeds belong to the protocol, see --seeds",
    "device": "it is where to compute; use --set device=…",
    "checkpoint": "it has no effect on scores; use --set",
    "model.name": "start a study per model",
    "stopping.monitor": "configurations are compared by this score; use --set",
    "stopping.split": "configurations are compared on this split; use --set",
}


def resolve_space(
    space: str | Path | Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[str, SearchSpace]:
    """What to call a space, and the space: by name, from a TOML file, or as given; checked.

    `settings` are the configuration that the values go into, nested.
    """
    task, model = settings["task"]["name"], settings["model"]["name"]
    if isinstance(space, Mapping):
        name, values = "own", _flat(space)
    elif isinstance(space, Path) or str(space).endswith(".toml"):
        name, values = Path(space).name, read_space(Path(space))
    else:
        name, values = str(space), named_space(str(space), task, model)
    return name, check_space(values, settings)


def named_space(name: str, task: str, model: str) -> SearchSpace:
    """The paper's grid of a model for a task, a compact space around it, or the authors' settings.

    Example:
        >>> grid_size(named_space("paper", "diameter", "adgn"))
        192
    """
    family, grids = task_entry(task).family, paper_spaces(model_spec(model).name)
    if name == "compact":
        return compact_space(task, model)
    if name == "authors":
        if family != "heterophily" or not has_authors_space(model):
            raise SpaceError(
                f"space='authors' is not there for {model!r} on {task!r}, but for the methods of "
                "the paper's table of heterophilic graphs on these; use 'compact' or 'paper'"
            )
        return authors_space(task, model)
    if name != "paper":
        unknown = unknown_name("space", name, ("paper", "compact", "authors"))
        raise SpaceError(f"{unknown} Or give a .toml file.")
    if family not in grids:
        raise SpaceError(
            f"space='paper' is not there for {model!r} on {task!r}, of the family {family!r}; use "
            "'compact' or a TOML file, or register one with adgn.tasks.register_space"
        )
    return grids[family].space


def read_space(path: Path) -> SearchSpace:
    """The space in a TOML file: `optimizer.lr = [0.01, 0.001]`, or a table per section.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        ...     _ = Path(file.name).write_text("optimizer.lr = [0.01, 0.001]")
        ...     read_space(Path(file.name))
        {'optimizer.lr': [0.01, 0.001]}
    """
    try:
        return _flat(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise SpaceError(
            f"there is no file {path}; give a TOML file, or the space 'paper' or 'compact'"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpaceError(f"cannot read the space {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SpaceError(f"{path} is not valid TOML: {error}") from error


def _flat(tables: Mapping[str, Any], prefix: str = "") -> SearchSpace:
    flat: SearchSpace = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def check_space(space: SearchSpace, settings: Mapping[str, Any]) -> SearchSpace:
    """The space, if every value of it makes a valid configuration."""
    if not space:
        raise SpaceError("the space is empty; give at least one key with a list of values")
    for key, values in space.items():
        reason = _NOT_CHOSEN.get(key) or _NOT_CHOSEN.get(key.partition(".")[0])
        if reason and key != _TRANSFORM:
            raise SpaceError(f"{key} cannot be chosen from: {reason}")
        if not isinstance(values, list | tuple):
            raise SpaceError(f"{key}={values!r} is not a list; write [{values!r}] for one value")
        if not values:
            raise SpaceError(f"{key} has an empty list; give its values, or leave the key out")
        for value in values:
            if not (value is None or isinstance(value, bool | int | float | str)):
                raise SpaceError(f"{key}: {value!r} is not a number, a name, true or false")
        if key == _TRANSFORM:
            _check_nodes_are_kept(values)
        if len(set(values)) < len(values):
            raise SpaceError(f"{key}={list(values)!r} has a value twice; give each once")
    first = {key: values[0] for key, values in space.items()}
    for number, (key, values) in enumerate(space.items()):
        for value in values[min(number, 1) :]:  # all first values together are tried once
            try:
                resolve_config(settings, nested({**first, key: value}))
            except ConfigError as error:
                section, _, name = key.partition(".")
                place = key if name else f"{key}={value!r}"
                message = str(error).removeprefix(f"{section}: " if name else "")
                raise SpaceError(f"{place}: {message.removeprefix(f'{key}: ')}") from error
    return {key: list(values) for key, values in space.items()}


def _check_nodes_are_kept(values: Sequence[Any]) -> None:
    for value in values:
        try:
            transforms = resolve_transforms(value)
        except (TypeError, ValueError) as error:
            raise SpaceError(f"{_TRANSFORM}: {error}") from error
        for transform in transforms:
            if not transform.keeps_nodes:
                raise SpaceError(
                    f"{_TRANSFORM}: {value!r} cannot be chosen from: {transform.name} leaves nodes "
                    "out, which would change the problem; use --set"
                )


def nested(point: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted key as sections, such as `lr` in the section `optimizer`."""
    sections: dict[str, Any] = {}
    for key, value in point.items():
        *path, name = key.split(".")
        place = sections
        for part in path:
            place = place.setdefault(part, {})
        place[name] = value
    return sections


def grid_size(space: SearchSpace) -> int:
    """How many configurations the product of all lists has.

    Example:
        >>> grid_size({"optimizer.lr": [0.1, 0.01, 0.001], "model.num_layers": [5, 10]})
        6
    """
    return math.prod(len(values) for values in space.values())


def grid_point(space: SearchSpace, number: int) -> dict[str, Any]:
    """Configuration `number` of the grid; the last key changes fastest."""
    point = {}
    for key, values in reversed(space.items()):
        number, place = divmod(number, len(values))
        point[key] = values[place]
    return {key: point[key] for key in space}


def grid_points(space: SearchSpace) -> Iterator[dict[str, Any]]:
    """All configurations of the grid, in order; the last setting changes first.

    Example:
        >>> [*grid_points({"optimizer.lr": [0.1, 0.01]})]
        [{'optimizer.lr': 0.1}, {'optimizer.lr': 0.01}]
    """
    return (grid_point(space, number) for number in range(grid_size(space)))


def random_points(space: SearchSpace, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Distinct configurations of the grid in random order; a larger `count` adds to them."""
    stream, size, seen = random.Random(seed), grid_size(space), set[int]()
    while len(seen) < min(count, size):
        number = stream.randrange(size)
        if number not in seen:
            seen.add(number)
            yield grid_point(space, number)
