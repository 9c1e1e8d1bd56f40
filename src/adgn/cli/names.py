"""Names and one-line descriptions of tasks and models, without importing what they are made of.

Torch takes seconds to load; lists and the completion of names in a shell must not wait for it.
"""

import ast
from importlib.resources import files

from adgn._util.registry import load_plugins, loaded_plugins

RESERVOIR = "adgn-reservoir"  # of `adgn fit`, beside the models


def task_rows() -> list[tuple[str, str, str]]:
    """Name, family and summary of every task."""
    from adgn.training.tasks import TASKS  # the table of tasks does not import torch

    return [(entry.name, entry.family, entry.summary) for entry in TASKS.values()]


def model_rows() -> list[tuple[str, str, str]]:
    """Name, title and paper of every model.

    A model is a class of torch, so its file is read and not imported: what stands in
    `@register_model(name, title=..., paper=...)`. A user's plugins have imported torch already.
    """
    load_plugins()
    if loaded_plugins():
        from adgn.nn import available_models, model_spec

        specs = map(model_spec, available_models())
        return [(spec.name, spec.title, spec.paper) for spec in specs]
    rows = []
    for file in (files("adgn") / "nn" / "models").iterdir():
        if not file.name.endswith(".py"):
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            for call in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "register_model":
                    given = {keyword.arg: keyword.value for keyword in call.keywords}
                    name = ast.literal_eval(call.args[0])
                    shown = [
                        ast.literal_eval(given[key]) if key in given else usual
                        for key, usual in (("title", name), ("paper", ""))
                    ]
                    rows.append((name, *shown))
    return sorted(rows)


def complete_task(incomplete: str) -> list[str]:
    """The tasks whose names begin like this."""
    return [name for name, *_ in task_rows() if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """The models whose names begin like this."""
    return [name for name, *_ in model_rows() if name.startswith(incomplete)]


def complete_fitted(incomplete: str) -> list[str]:
    """The models of `adgn fit` whose names begin like this."""
    return [*complete_model(incomplete), *([RESERVOIR] if RESERVOIR.startswith(incomplete) else [])]
