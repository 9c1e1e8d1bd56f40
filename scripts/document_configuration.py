"""Writes docs/configuration.md from the schema of a configuration, the tasks and the models.

python scripts/document_configuration.py           # print
python scripts/document_configuration.py --write   # write docs/configuration.md
"""

from pathlib import Path
from typing import Any

from pages import markdown_table, print_or_write
from pydantic import BaseModel

from adgn.nn import available_models, model_spec
from adgn.training import TASKS
from adgn.training.config import TaskConfig, TrainConfig

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"

HEAD = """\
# The configuration

Every setting of a run, its type, its default and what it means. A setting is named `section.key`:

- in a file, `adgn train --config run.toml`, it is a key of a section: `[optimizer]` and below it
  `lr = 0.01`;
- on the command line it is `--set optimizer.lr=0.01`;
- in Python it is `train("sssp", optimizer={"lr": 0.01})`;
- in a [search space](selection.md#spaces) it is a key with a list of values.

What is not given has the task's default, the paper's where it has one: `adgn tasks sssp` lists them
all, and the [run directory](training.md) keeps every one in `config.toml`. A key or value that does
not exist is an error, with the nearest name. The tables have the defaults of the schema, before a
task sets its own. This page is generated from the schema by
`python scripts/document_configuration.py --write`.
"""
MODEL = """\
Besides these, every model has options of its own. Their defaults and meanings are on the page of
[models](models.md#each-model):
"""
TASK = """\
Besides the name, the tasks of a family have settings of their own:
"""


def schema_type(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    """The type of a field, as its JSON schema has it, with its bounds."""
    if "$ref" in schema:
        schema = defs[schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        parts = [schema_type(part, defs) for part in schema["anyOf"]]
        return " or ".join(dict.fromkeys(parts))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    names = {"integer": "integer", "number": "number", "string": "text", "boolean": "true or false"}
    names |= {"null": "none", "array": "list", "object": "table"}
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list of {schema_type(schema['items'], defs)}s"
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]}" for key, sign in limits.items() if key in schema]
    return " ".join([names.get(kind, kind), ", ".join(bounds)]).strip()


def shown(value: Any) -> str:
    """A default as a configuration has it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value)}`" if isinstance(value, tuple) else f"`{value}`"


def rows(section: type[BaseModel], prefix: str, without: tuple[str, ...] = ()) -> list[list[str]]:
    """The fields of a section: key, type, default and meaning."""
    schema = section.model_json_schema()
    found = []
    for key, field in section.model_fields.items():
        if key in without:
            continue
        kind = schema_type(schema["properties"][key], schema.get("$defs", {}))
        default = (
            "required"
            if field.is_required()
            else shown(field.get_default(call_default_factory=True, validated_data={}))
        )
        meaning = (field.description or "").replace("|", "&#124;")
        found.append([f"`{prefix}{key}`", kind.replace("|", "&#124;"), default, meaning])
    return found


def table(found: list[list[str]]) -> str:
    """The fields in Markdown."""
    return markdown_table(["Setting", "Type", "Default", "Meaning"], found)


def task_sections() -> str:
    """The settings of tasks, those with the same ones together."""
    families: dict[type[TaskConfig], list[str]] = {}
    for entry in TASKS.values():
        families.setdefault(entry.config, []).append(f"`{entry.name}`")
    parts = []
    for section, names in families.items():
        own = rows(section, "task.", without=("name",))
        if own:
            parts.append(f"### {_listed(names)}\n\n{table(own)}")
    return "\n".join(parts)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## `[task]`\n", table(rows(TaskConfig, "task.")), TASK, task_sections()]
    top = []
    for name, field in TrainConfig.model_fields.items():
        section = field.annotation
        if name == "task":
            continue
        if isinstance(section, type) and issubclass(section, BaseModel):
            about = " ".join((section.__doc__ or "").split("\n\n")[0].split())
            parts.append(f"## `[{name}]`\n\n{about}\n\n{table(rows(section, f'{name}.'))}")
            if name == "model":
                listed = [
                    [
                        f"[`{model}`](models.md#{model})",
                        ", ".join(f"`{o.name}`" for o in model_spec(model).describe_options()),
                    ]
                    for model in available_models()
                ]
                parts.append(MODEL + "\n" + markdown_table(["Model", "Options"], listed))
        else:
            top.append(name)
    others = tuple(name for name in TrainConfig.model_fields if name not in top)
    parts.append("## Without a section\n\n" + table(rows(TrainConfig, "", without=others)))
    return "\n".join(parts)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, page)
