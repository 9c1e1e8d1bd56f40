"""Writes docs/cli.md from the commands themselves.

python scripts/document_cli.py           # print
python scripts/document_cli.py --write   # write docs/cli.md
"""

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pages import markdown_table, print_or_write
from typer.main import get_command

from adgn.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
TYPES = {Path: "PATH", int: "INTEGER", float: "NUMBER", str: "TEXT"}

HEAD = """\
# The command line

Every command of `adgn`, with its arguments and options: what `adgn COMMAND --help` shows, in one
place. The guides say when to use which; this page is generated from the program by
`python scripts/document_cli.py --write`.
"""


def commands(group: Any, path: tuple[str, ...] = ("adgn",)) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, those of groups included."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        here = (*path, name)
        if getattr(command, "commands", None):
            yield from commands(command, here)
        else:
            yield " ".join(here), command


def cell(text: str) -> str:
    """Help that a table of Markdown keeps as it is."""
    plain = " ".join(text.replace("\b", "").split())
    return plain.replace("|", "&#124;").replace("<", "&lt;").replace("*", "\\*")


def paragraphs(text: str) -> Iterator[str]:
    """The help of a command; what is set line by line there is so here."""
    for part in text.split("\n\n"):
        lines = part.strip().splitlines()
        if lines and lines[0].strip() == "\b":
            title, *examples = lines[1:]
            yield f"{title.strip()}\n\n```text\n" + "\n".join(map(str.strip, examples)) + "\n```"
        else:
            yield cell(part)


def default(option: Any) -> str:
    """What an option has where it is not given."""
    if option.required:
        return "required"
    value = option.default() if callable(option.default) else option.default
    if value in (None, (), [], "") or "Sentinel" in type(value).__name__:
        return ""
    if isinstance(value, bool):
        names = option.opts if value else option.secondary_opts
        return f"`{names[0]}`" if names else ("yes" if value else "")
    return f"`{value}`"


def kind(option: Any) -> str:
    """What kind of value an option takes; nothing for a switch."""
    if getattr(option, "is_flag", False) or getattr(option, "count", False):
        return ""
    text = option.metavar or _type(option.type_descriptor.annotation)
    shown = f"`{text.strip('[]')}`".replace("|", "`, `")
    return f"{shown}, may be repeated" if option.multiple else shown


def _type(annotation: Any) -> str:
    """A type as the page names it; of a list or an optional value that of what it holds."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(choice.value) for choice in annotation)
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    inner = [held for held in get_args(annotation) if held is not type(None)]
    return _type(inner[0]) if inner else TYPES.get(annotation, "TEXT")


def _word(argument: Any) -> str:
    return str(argument.metavar or argument.name).upper().strip("[].")


def section(name: str, command: Any) -> str:
    """One command: what it does, how it is called, and everything it takes."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    words = [name]
    for argument in arguments:
        word = _word(argument) + ("…" if argument.nargs == -1 else "")
        words.append(word if argument.required else f"[{word}]")
    words += ["[OPTIONS]"] if options else []
    lines = [f"## {name}", *paragraphs(inspect.cleandoc(command.help or ""))]
    lines.append(f"```text\n{' '.join(words)}\n```")
    if arguments:
        rows = [[f"`{_word(a)}`".replace("|", "` or `"), cell(a.help or "")] for a in arguments]
        lines.append(markdown_table(["Argument", "Meaning"], rows).rstrip())
    if options:
        rows = [
            [
                ", ".join(f"`{name}`" for name in (*o.opts, *o.secondary_opts)),
                kind(o),
                default(o),
                cell(o.help or ""),
            ]
            for o in options
        ]
        lines.append(markdown_table(["Option", "Value", "Default", "Meaning"], rows).rstrip())
    return "\n\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    found = list(commands(get_command(app)))
    rows = [
        [
            f"[`{name}`](#{name.replace(' ', '-')})",
            cell(inspect.cleandoc(command.help or "").split("\n\n")[0]),
        ]
        for name, command in found
    ]
    parts = [HEAD, markdown_table(["Command", "What it does"], rows)]
    return "\n".join([*parts, *(section(name, command) for name, command in found)])


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, page)
