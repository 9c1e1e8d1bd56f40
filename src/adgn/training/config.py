"""The configuration of a run: one validated tree with a section for each concern."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    StrictBool,
    StrictFloat,
    StrictInt,
    field_validator,
    model_validator,
)

from adgn._util.suggestions import did_you_mean, nearest

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

    @field_validator("device")
    @classmethod
    def _device_has_a_name(cls, name: str) -> str:
        from adgn.training.devices import check_device_name  # it brings torch

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
