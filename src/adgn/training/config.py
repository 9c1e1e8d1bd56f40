"""The configuration of a run: one validated tree, read from TOML files and `key=value` settings."""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from adgn._util.suggestions import did_you_mean, nearest
from adgn.training.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Self

NONE = "none"  # TOML has no null; where a setting may be absent, this word says so


class Section(BaseModel):
    """A part of the configuration; an unknown key is refused with the nearest valid one.

    Numbers and truth values are strict: `"7"`, `7.0` or `True` for 7 is a slip, not a setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_and_none(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        if cls.model_config.get("extra") == "forbid":
            for key in values:
                if key not in cls.model_fields:
                    raise ValueError(unknown_key(str(key), cls.model_fields))
        return {
            key: None if value == NONE and cls._may_be_none(key) else value
            for key, value in values.items()
        }

    @classmethod
    def _may_be_none(cls, key: str) -> bool:
        field = cls.model_fields.get(key)
        return field is not None and type(None) in get_args(field.annotation)


def unknown_key(key: str, valid: Iterable[str], where: str = "") -> str:
    """The message for a key that a section does not have."""
    elsewhere = {
        name: f"{title}.{name}"
        for title, section in reversed(_SECTIONS.items())
        for name in section.model_fields
    }
    near = nearest(key, valid)
    if near is None:
        other = nearest(key, elsewhere)
        near = other and elsewhere[other]
    hint = did_you_mean(near)
    return f"unknown key {key!r}{where}.{hint} Valid: {', '.join(valid)}"


class TaskConfig(Section):
    """What is to be learnt. Further settings depend on the task: `adgn tasks NAME` lists them."""

    name: str = Field(description="the task, one of those that `adgn tasks` lists")

    @classmethod
    def of(cls, config: "TrainConfig") -> "Self":
        """The task section of a configuration, which must be of this class."""
        if not isinstance(config.task, cls):
            raise TypeError(f"task is a {type(config.task).__name__}; expected {cls.__name__}")
        return config.task


class ModelConfig(Section):
    """The network. Besides these keys a model has options of its own: `adgn models` lists them."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    name: str = Field(
        default="adgn", description="the method, one of those that `adgn models` lists"
    )
    hidden_channels: StrictInt = Field(default=30, ge=1, description="the size of a node's state")
    num_layers: StrictInt = Field(default=20, ge=1, description="how many layers")

    @model_validator(mode="before")
    @classmethod
    def _options_of_the_model(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        from adgn.training.models import check_model_options, model_options  # they bring torch

        own = {key: value for key, value in values.items() if key in cls.model_fields}
        extra = {key: value for key, value in values.items() if key not in cls.model_fields}
        name = own.get("name", cls.model_fields["name"].default)
        valid = dict.fromkeys([*cls.model_fields, *model_options(name)])
        for key in extra:
            if key not in valid:
                raise ValueError(unknown_key(str(key), valid, f" for the model {name!r}"))
        return {**own, **check_model_options(name, extra)}

    @property
    def options(self) -> dict[str, Any]:
        """The model's options."""
        return dict(self.model_extra or {})


class OptimizerConfig(Section):
    """The optimiser."""

    name: Literal["adam", "adamw", "sgd", "rmsprop"] = Field(
        default="adam", description="which one"
    )
    lr: StrictFloat = Field(default=0.003, gt=0, description="the learning rate")
    weight_decay: StrictFloat = Field(
        default=0.0, ge=0, description="L2 penalty (decoupled for adamw)"
    )
    momentum: StrictFloat = Field(default=0.0, ge=0, lt=1, description="for sgd and rmsprop only")
    penalties: tuple[StrictFloat, ...] | None = Field(
        default=None,
        min_length=1,
        description="for `model.readout=ridge` only, which has no epochs: penalties to try, in "
        'units of the mean of the Gram matrix\'s diagonal; "none": 1e-9 to 10',
    )

    @model_validator(mode="after")
    def _momentum_is_used(self) -> "OptimizerConfig":
        if self.momentum and self.name not in ("sgd", "rmsprop"):
            raise ValueError(
                f"momentum={self.momentum} has no effect with {self.name!r}; use sgd or rmsprop"
            )
        return self


class ScheduleConfig(Section):
    """How the learning rate changes from epoch to epoch."""

    name: Literal["none", "plateau", "cosine", "step"] = Field(
        default="none",
        description='"plateau": by `factor` when the followed score stalls; "cosine": down to '
        '`min_lr` over all epochs; "step": by `factor` every `every` epochs',
    )
    factor: StrictFloat = Field(
        default=0.5, gt=0, lt=1, description="plateau, step: what the rate is times"
    )
    patience: StrictInt = Field(
        default=10, ge=0, description="plateau: epochs without a better score"
    )
    threshold: StrictFloat = Field(
        default=1e-4, ge=0, description="plateau: how much better counts, absolute"
    )
    every: StrictInt = Field(default=100, ge=1, description="step: epochs between two changes")
    min_lr: StrictFloat = Field(default=0.0, ge=0, description="plateau, cosine: the smallest rate")


class StoppingConfig(Section):
    """Early stopping, and which epoch's weights are the best."""

    split: Literal["val", "train"] = Field(default="val", description="where the score is measured")
    monitor: str | None = Field(
        default=None, description='the score; "none": the usual one of the task'
    )
    patience: StrictInt | None = Field(
        default=100,
        ge=0,
        description='stop when the best epoch is more than this ago; "none": never',
    )
    ties: StrictBool = Field(
        default=True, description="whether a score equal to the best counts as better"
    )
    target: StrictFloat | None = Field(
        default=None, description="stop as soon as the score is this good"
    )


class LoopConfig(Section):
    """The loop."""

    max_epochs: StrictInt = Field(default=1500, ge=1, description="epochs at most")
    batch_size: StrictInt | None = Field(
        default=None,
        ge=1,
        description='graphs per batch; "none": the task\'s (one graph: all nodes)',
    )
    passes_per_epoch: StrictInt = Field(
        default=1, ge=1, description="passes over the train set per epoch"
    )
    evaluate_every: StrictInt = Field(default=1, ge=1, description="epochs between two evaluations")
    accumulate: StrictInt = Field(default=1, ge=1, description="batches per step of the optimiser")
    clip_norm: StrictFloat | None = Field(
        default=None, gt=0, description="largest norm of the gradient"
    )


class CheckpointConfig(Section):
    """When a resumable state is written. Writing takes a few percent of the time at most."""

    every_seconds: StrictFloat | None = Field(
        default=30.0, ge=0, description="seconds between two states"
    )
    every_epochs: StrictInt | None = Field(
        default=None, ge=1, description="epochs between two states"
    )


_SECTIONS: dict[str, type[Section]] = {
    "model": ModelConfig,
    "optimizer": OptimizerConfig,
    "schedule": ScheduleConfig,
    "stopping": StoppingConfig,
    "loop": LoopConfig,
    "checkpoint": CheckpointConfig,
}


class TrainConfig(Section):
    """A run: what is learnt, by which network, and how.

    Only `task` must be given. What is not given has the default of the task, the paper's where it
    has one.

    Example:
        >>> config = TrainConfig(task="sssp", model={"num_layers": 5})
        >>> config.optimizer.lr, config.model.hidden_channels, config.model.num_layers
        (0.003, 30, 5)
        >>> config.model.options["epsilon"]
        0.1
    """

    task: SerializeAsAny[TaskConfig]
    model: ModelConfig = Field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = Field(default_factory=ScheduleConfig)
    stopping: StoppingConfig = Field(default_factory=StoppingConfig)
    loop: LoopConfig = Field(default_factory=LoopConfig)
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig)
    seed: StrictInt = Field(
        default=0, ge=0, lt=2**32, description="of initial weights, order and dropout"
    )
    device: str = Field(
        default="cpu", description='where to compute: "cpu", "cuda", "cuda:1", "auto"'
    )

    def __init__(self, task: Any = None, /, **sections: Any) -> None:
        if task is not None:
            sections["task"] = task
        super().__init__(**sections)

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_task(cls, values: Any) -> Any:
        from adgn.training.tasks import task_defaults  # tasks are made of these sections

        if not isinstance(values, Mapping) or not values.get("task"):
            raise ValueError("task is missing; give a name such as 'sssp' (see `adgn tasks`)")
        given = dict(values)
        if isinstance(given["task"], str):
            given["task"] = {"name": given["task"]}
        given = {
            key: value.model_dump(exclude_unset=True) if isinstance(value, Section) else value
            for key, value in given.items()
        }
        if not isinstance(given["task"], Mapping) or "name" not in given["task"]:
            raise ValueError("task.name is missing; give one of those that `adgn tasks` lists")
        return merged(task_defaults(given["task"], given.get("model")), given)

    @field_validator("task", mode="before")
    @classmethod
    def _settings_of_the_task(cls, values: Any) -> Any:
        from adgn.training.tasks import task_entry

        if isinstance(values, Mapping):
            return task_entry(values["name"]).config(**values)
        return values

    @model_validator(mode="after")
    def _penalties_belong_to_a_ridge(self) -> "TrainConfig":
        from adgn.training.models import check_penalties  # it brings torch

        check_penalties(self)
        return self

    @field_validator("device")
    @classmethod
    def _device_has_a_name(cls, name: str) -> str:
        from adgn.training.seeding import check_device_name  # it brings torch

        # Whether it is there is no question of the configuration, which another machine may read.
        check_device_name(name)
        return name


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings: those of `over`, and those of `base` where `over` has none."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = merged(below, value) if both else value  # type: ignore[arg-type]
    return result


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
        for key, value in flat_settings(settings):
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
    flat_left, flat_right = dict(flat_settings(left)), dict(flat_settings(right))
    return [
        f"{key}: {flat_left.get(key)!r}, not {flat_right.get(key)!r}"
        for key in dict.fromkeys([*flat_left, *flat_right])
        if flat_left.get(key) != flat_right.get(key)
    ]


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Nested settings as pairs of a dotted name and a value."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat_settings(value, f"{prefix}{key}.")
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
