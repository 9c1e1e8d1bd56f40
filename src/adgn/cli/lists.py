"""`adgn tasks` and `adgn models`: what can be trained, and with which settings."""

from typing import Annotated

import typer
from rich.markup import escape

from adgn.cli.console import console, print_table
from adgn.cli.names import complete_model, complete_task, model_rows, task_rows
from adgn.cli.plugins import PluginOption

__all__ = ["models", "tasks"]


def tasks(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A task, to see all its settings.",
            show_default=False,
            autocompletion=complete_task,
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """List all tasks, or all settings of one with the defaults of its protocol."""
    if name is None:
        print_table(("task", "family", "what is predicted"), task_rows())
        return

    from adgn.training.reference import setting_rows
    from adgn.training.tasks import task_entry

    entry = task_entry(name)
    out = console()
    out.print(f"[bold]{entry.name}[/]: {escape(entry.summary)}", highlight=False, soft_wrap=True)
    if entry.protocol:
        out.print(f"protocol: {escape(entry.protocol)}", highlight=False, soft_wrap=True)
    rows = [tuple(escape(text) for text in row) for row in setting_rows(name)]
    print_table(("setting", "default", "meaning"), rows)


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A model, to see its options.", show_default=False, autocompletion=complete_model
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """List all models, or the options of one."""
    if name is None:
        print_table(("model", "title", "paper"), model_rows())
        return

    from adgn.nn import model_spec

    spec = model_spec(name)
    out = console()
    out.print(
        f"[bold]{spec.name}[/]: {escape(spec.title)}" + (f", {spec.paper}" if spec.paper else ""),
        highlight=False,
    )
    rows = [
        (f"model.{option.name}", escape(repr(option.default)), escape(option.description))
        for option in spec.describe_options()
    ]
    print_table(("setting", "default", "meaning"), rows)
