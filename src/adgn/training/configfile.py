"""Configurations as TOML, as `key=value` settings, and errors that say what to write instead."""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from adgn.training.config import NONE, TrainConfig, merged
from adgn.training.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TOO_DEEP = "is nested too deeply to be read"
_TOO_LARGE = "has an integer of more than 64 bits; give a smaller one"

ConfigLike = TrainConfig | Mapping[str, Any] | str | Path


def resolve_config(source: ConfigLike, *overrides: Mapping[str, Any]) -> TrainConfig:
    """A validated configuration with all defaults filled in.

    Args:
        source: A configuration, nested settings, a TOML file (a path, or text that ends in
            `.toml`), or the name of a task.
        *overrides: Nested settings that go before those of `source`, the last one first.

    Raises:
        ConfigError: A key or value is not valid; all problems are named.

    Example:
        >>> resolve_config("diameter", {"loop": {"max_epochs": 3}}).loop.max_epochs
        3
        >>> resolve_config("diameter", {"loop": {"max_epoch": 3}})
        Traceback (most recent call last):
        adgn.training.errors.ConfigError: loop: unknown key 'max_epoch'. Did you mean ...
    """
    if isinstance(source, TrainConfig):
        if not any(overrides):
            return source  # it was checked when it was made
        settings: dict[str, Any] = source.model_dump()
    elif isinstance(source, Mapping):
        settings = dict(source)
    elif isinstance(source, Path) or str(source).endswith(".toml"):
        settings = read_config(Path(source))
    else:
        settings = {"task": {"name": source}}
    if isinstance(settings.get("task"), str):
        settings["task"] = {"name": settings["task"]}
    try:
        for override in overrides:
            settings = merged(settings, override)
        for key, value in _flat(settings):
            if not _integers_fit(value):
                raise ConfigError(f"{key} {_TOO_LARGE}")
        return TrainConfig(**settings)
    except RecursionError:
        raise ConfigError(f"the configuration {_TOO_DEEP}") from None
    except ValidationError as error:
        raise ConfigError(_explain(error)) from error
    except TypeError as error:  # a key that is no Python name
        raise ConfigError(str(error)) from error


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, not yet validated.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "run.toml"
        ...     _ = path.write_text('task = "texas"\\nloop.max_epochs = 3')
        ...     read_config(path)
        {'task': 'texas', 'loop': {'max_epochs': 3}}
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration file {path}: {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} {_TOO_DEEP}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    except ValueError as error:  # more digits than Python reads
        raise ConfigError(f"{path} {_TOO_LARGE}") from error


def parse_setting(text: str) -> dict[str, Any]:
    """A setting `section.key=value` as nested settings; the value is TOML, or else plain text.

    Example:
        >>> parse_setting("optimizer.lr=1e-3"), parse_setting("model.phi=gcn")
        ({'optimizer': {'lr': 0.001}}, {'model': {'phi': 'gcn'}})
        >>> parse_setting("task.train=[2, 64]")
        {'task': {'train': [2, 64]}}
    """
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise ConfigError(f"{text!r} is not a setting; write key=value, such as optimizer.lr=0.01")
    try:
        parsed = tomllib.loads(f"value = {value.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    except RecursionError:
        raise ConfigError(f"{key.strip()} {_TOO_DEEP}") from None
    except ValueError:  # more digits than Python reads
        raise ConfigError(f"{key.strip()} {_TOO_LARGE}") from None
    for part in reversed(parts):
        parsed = {part: parsed}
    return parsed  # type: ignore[no-any-return]


def to_toml(config: BaseModel) -> str:
    """A configuration as TOML that reads back as the same configuration.

    Example:
        >>> text = to_toml(resolve_config("texas"))
        >>> text.splitlines()[:2]
        ['seed = 0', 'device = "cpu"']
        >>> resolve_config(tomllib.loads(text)) == resolve_config("texas")
        True
    """
    settings = config.model_dump()
    lines = [
        f"{key} = {_toml(value)}" for key, value in settings.items() if not isinstance(value, dict)
    ]
    for key, section in settings.items():
        if isinstance(section, dict):
            lines += ["", f"[{key}]"]
            lines += [f"{name} = {_toml(value)}" for name, value in section.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if value is None:
        return f'"{NONE}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are among TOML's, as long as other characters stay as they are.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{{inner}}}"
    raise TypeError(f"a setting is a {type(value).__name__}, which TOML has no form for")


def config_differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """The keys in which two configurations differ, as `loop.max_epochs: 1, not 2`."""
    flat_left, flat_right = dict(_flat(left)), dict(_flat(right))
    return [
        f"{key}: {flat_left.get(key)!r}, not {flat_right.get(key)!r}"
        for key in dict.fromkeys([*flat_left, *flat_right])
        if flat_left.get(key) != flat_right.get(key)
    ]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", list(value) if isinstance(value, tuple) else value


def _integers_fit(value: Any) -> bool:
    """Whether all integers have 64 bits, as TOML's and torch's do."""
    if isinstance(value, list):
        return all(map(_integers_fit, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _explain(error: ValidationError) -> str:
    problems = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] != "value_error":
            message = f"{problem['input']!r} is not valid: {message[:1].lower()}{message[1:]}"
        problems.append(f"{place}: {message}" if place else message)
    return "; ".join(problems)
