"""Messages of the library in the words of the command line: `ignore=['day']` is `--ignore day`."""

import re
import shlex

_OPTIONS = {
    "id": "--id",
    "source": "--edge-source",
    "target": "--edge-target",
    "target_column": "--target",
    "weight": "--weight",
    "graph": "--graph",
    "graphs": "--graphs",
    "ignore": "--ignore",
    "categories": "--category",
    "groups": "--group",
    "time": "--time",
    "split": "--split-column",
    "delimiter": "--delimiter",
    "encoding": "--encoding",
    "decimal": "--decimal",
    "test_size": "--test-size",
    "minutes": "--minutes",
    "metric": "--metric",
    "model": "--model",
    "device": "--device",
}
_DIRECTED = {"True": "--directed", "False": "--undirected"}
_ARGUMENT = re.compile(
    rf"(?<![\w.-])({'|'.join(_OPTIONS)}|directed)="
    r"(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|…|[\w.+-]*\w)"
)


def in_options(text: str) -> str:
    """A text with options of `adgn fit` in place of arguments of Python.

    Example:
        >>> in_options("leave it out: ignore=['day', 'of week'], or read it with directed=False")
        "leave it out: --ignore day --ignore 'of week', or read it with --undirected"
        >>> in_options("several ids; say which with id='name'")
        'several ids; say which with --id name'
    """
    return _ARGUMENT.sub(_as_option, text)


def _as_option(found: re.Match[str]) -> str:
    name, value = found.groups()
    if name == "directed":
        return _DIRECTED.get(value, "--directed or --undirected")
    values = [value.strip("'\"")]
    if value.startswith("["):
        values = [item.strip().strip("'\"") for item in value[1:-1].split(",")]
    return " ".join(f"{_OPTIONS[name]} {_quoted(item)}" for item in values)


def _quoted(value: str) -> str:
    return value if "…" in value else shlex.quote(value)
