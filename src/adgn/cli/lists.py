"""`adgn tasks` and `adgn models`: what can be trained, and with which settings."""

from typing import Annotated

from typer import Argument

from adgn.cli.console import PluginOption, print_table, say
from adgn.cli.names import complete_model, complete_task, model_rows, task_rows

_TASK = Argument(help="A task, to see all its settings.", autocompletion=complete_task)
_MODEL = Argument(help="A model, to see its options.", autocompletion=complete_model)


def tasks(name: Annotated[str | None, _TASK] = None, plugin: PluginOption = None) -> None:
    """List all tasks, or all settings of one with the defaults of its protocol."""
    if name is None:
        print_table(("task", "family", "what is predicted"), task_rows())
        return

    from adgn.training.reference import setting_rows
    from adgn.training.tasks import task_entry

    entry = task_entry(name)
    say(f"{entry.name}: {entry.summary}", style="bold")
    if entry.protocol:
        say(f"protocol: {entry.protocol}")
    print_table(("setting", "default", "meaning"), setting_rows(name))


def models(name: Annotated[str | None, _MODEL] = None, plugin: PluginOption = None) -> None:
    """List all models, or the options of one."""
    if name is None:
        print_table(("model", "title", "paper"), model_rows())
        return

    from adgn.nn import model_spec

    spec = model_spec(name)
    say(", ".join(filter(None, (f"{spec.name}: {spec.title}", spec.paper))), style="bold")
    rows = [(f"model.{o.name}", repr(o.default), o.description) for o in spec.describe_options()]
    print_table(("setting", "default", "meaning"), rows)
