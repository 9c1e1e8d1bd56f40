"""All tasks by name: data, loss, scores and the settings of the paper's protocol.

A new task is a file with its entries and a line here.
"""

from collections.abc import Mapping
from typing import Any

from adgn._util.suggestions import unknown_name
from adgn.training.config import merged
from adgn.training.tasks import nodes, properties, transfer, trees
from adgn.training.tasks.entry import TaskData, TaskEntry, TaskSize

__all__ = ["TASKS", "TaskData", "TaskEntry", "TaskSize", "task_defaults", "task_entry"]

TASKS: Mapping[str, TaskEntry] = {
    entry.name: entry
    for family in (properties, nodes, trees, transfer)
    for entry in family.entries()
}


def task_entry(name: str) -> TaskEntry:
    """The task of this name.

    Example:
        >>> task_entry("diamter")
        Traceback (most recent call last):
        ValueError: task='diamter' is not known. Did you mean 'diameter'? ...
    """
    if name not in TASKS:
        raise unknown_name("task", name, TASKS)
    return TASKS[name]


def task_defaults(task: Mapping[str, Any], model: Any = None) -> dict[str, Any]:
    """The sections of a configuration as the protocol of a task has them.

    Args:
        task: The task section; defaults may depend on its settings.
        model: The model section as given so far; each model has its own defaults.
    """
    entry = task_entry(task["name"])
    name = model.get("name", "adgn") if isinstance(model, Mapping) else "adgn"
    return merged(entry.defaults(task, name), {"model": entry.model_defaults.get(name, {})})
