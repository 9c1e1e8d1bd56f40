"""The main job in small: A-DGN and GCN on reduced property tasks, with what a constant scores."""

import shutil
import warnings
from pathlib import Path
from typing import Any

from rich.markup import escape

from adgn.cli.console import console, print_table

__all__ = ["DEMO_SETTINGS", "property_demo"]

TASKS = ("diameter", "sssp")
MODELS = ("adgn", "gcn")
# A tenth of the paper's graphs and half of its layers: minutes become seconds, and the gap between
# the two models, which grows with both, is there all the same.
DEMO_SETTINGS: dict[str, Any] = {
    "task": {"train": [5, 100], "val": [5, 20], "test": [5, 40]},
    "model": {"hidden_channels": 20, "num_layers": 10},
    "optimizer": {"lr": 0.01},
    "loop": {"max_epochs": 60, "batch_size": 50},
}


def property_demo(out: Path) -> None:
    """Trains A-DGN and GCN on small sets of `diameter` and `sssp`; prints scores side by side.

    Args:
        out: Where the runs are kept: data sets, weights, scores. Runs of an earlier demo in it are
            replaced.
    """
    from adgn.cli.training_progress import shown_progress
    from adgn.training import LearnedNothingWarning, train
    from adgn.training.devices import thread_count

    rows = []
    for task in TASKS:
        row = [task]
        for model in MODELS:
            run_dir = out / f"{task}-{model}"
            if (run_dir / "config.toml").exists():
                shutil.rmtree(run_dir)
            # Batches this small gain nothing from more threads, and a busy machine makes them wait.
            with (
                thread_count(1),
                shown_progress(f"{task} {model}") as shown,
                warnings.catch_warnings(),
            ):
                # The table has the constant beside GCN, which stays near it.
                warnings.simplefilter("ignore", LearnedNothingWarning)
                result = train(
                    task,
                    run_dir=run_dir,
                    callbacks=[shown.callback],
                    progress=shown.preparing,
                    **_settings(model, out),
                )
            row.append(f"{result.score:.3f}")
        rows.append([*row, f"{result.constant['log10_mse']:.3f}"])
    print_table(["log10 of the test MSE (lower is better)", "A-DGN", "GCN", "constant"], rows)
    console().print(
        f"runs, weights and scores: {escape(str(out))}. In full: adgn train diameter",
        highlight=False,
        soft_wrap=True,
    )


def _settings(model: str, out: Path) -> dict[str, Any]:
    sections = {key: dict(value) for key, value in DEMO_SETTINGS.items()}
    sections["task"]["root"] = str(out / "data")
    sections["model"]["name"] = model
    if model == "adgn":
        sections["model"]["epsilon"] = 0.3  # ten layers of 0.3 reach as far as 20 of 0.15
    return sections
