"""From the model section of a configuration to a network."""

from collections.abc import Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

from adgn.nn import GraphNetwork, build_model, model_spec

if TYPE_CHECKING:
    from adgn.training.config import ModelConfig
    from adgn.training.tasks import TaskData, TaskSize


def model_options(name: str) -> list[str]:
    """The names of a model's options."""
    return list(model_spec(name).options.model_fields)


def check_model_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A model's options, checked, with defaults filled in."""
    spec = model_spec(name)
    fields = spec.options.model_fields
    given = {
        key: None if value == "none" and _may_be_none(fields, key) else value
        for key, value in options.items()
    }
    for key, value in given.items():
        if not _is_plain(value):
            raise ValueError(
                f"{key} is a {type(value).__name__}; a configuration holds names and numbers that "
                "can be written down. For a module of your own build the model and use Trainer"
            )
    parsed = spec.parse(given)
    return {key: getattr(parsed, key) for key in fields}


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def _may_be_none(fields: Mapping[str, Any], key: str) -> bool:
    kinds = get_args(fields[key].annotation) if key in fields else ()
    return NoneType in kinds and not any("none" in get_args(kind) for kind in kinds)


def build_network(config: "ModelConfig", data: "TaskData | TaskSize") -> GraphNetwork:
    """The network of a model section, for a task's features and outputs."""
    encoder, embeddings = config.options["encoder"], data.embeddings
    if (encoder == "embedding") != (embeddings is not None):
        numbers, integers = "numbers, use 'linear' or 'none'", "integers, use 'embedding'"
        kind = numbers if embeddings is None else integers
        raise ValueError(
            f"model.encoder={encoder!r} does not fit the task: its features are {kind}"
        )
    return build_model(
        config.name,
        data.in_channels if embeddings is None else embeddings,
        config.hidden_channels,
        data.out_channels,
        config.num_layers,
        level=data.level,
        **config.options,
    )
