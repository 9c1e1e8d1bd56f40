"""The settings of a configuration as a table, made from the configuration itself."""

from typing import Any

from pydantic import BaseModel

from adgn.nn import model_spec
from adgn.training.config import TrainConfig


def setting_rows(task: str, model: str = "adgn") -> list[tuple[str, str, str]]:
    """Key, default and meaning of every setting of a task with a model."""
    config = TrainConfig(task=task, model={"name": model})
    rows = []
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            for key, field in type(value).model_fields.items():
                rows.append((f"{name}.{key}", _text(getattr(value, key)), field.description or ""))
            if name == "model":
                meanings = {o.name: o.description for o in model_spec(model).describe_options()}
                rows += [
                    (f"model.{key}", _text(option), meanings[key])
                    for key, option in config.model.options.items()
                ]
        else:
            rows.append((name, _text(value), type(config).model_fields[name].description or ""))
    return rows


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


def settings_markdown(task: str) -> str:
    """The table of a task's settings in Markdown, for the documentation."""
    lines = [f"| setting | default for `{task}` | meaning |", "|---|---|---|"]
    lines += [
        f"| `{key}` | `{default}` | {meaning.replace('|', chr(92) + '|')} |"
        for key, default, meaning in setting_rows(task)
    ]
    return "\n".join(lines)
