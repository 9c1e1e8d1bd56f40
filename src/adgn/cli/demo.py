"""`adgn demo`: see in a few minutes what the method is for."""

import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from adgn.cli.console import make_folder, print_table, say

if TYPE_CHECKING:
    from adgn.training import Callback

app = typer.Typer(help="See what the method is for, in a few minutes.")

Out = Annotated[
    Path, Option(help="Where everything it makes goes.", file_okay=False, writable=True)
]
TASKS = ("diameter", "sssp")
# A tenth of the paper's graphs and half of its layers: minutes become seconds, and the gap between
# the models, which grows with both, is there all the same.
DEMO_SETTINGS: dict[str, dict[str, Any]] = {
    "task": {"train": [5, 100], "val": [5, 20], "test": [5, 40]},
    "model": {"hidden_channels": 20, "num_layers": 10},
    "optimizer": {"lr": 0.01},
    "loop": {"max_epochs": 60, "batch_size": 50},
}
# A fit without settings trains until nothing gets better, which takes a minute or two.
OWN_SETTINGS: dict[str, dict[str, Any]] = {"loop": {"max_epochs": 60}}
# Ten layers of 0.3 reach as far as 20 of 0.15.
OWN_OPTIONS: dict[str, dict[str, Any]] = {"adgn": {"epsilon": 0.3}}


@app.callback(invoke_without_command=True)
def demo(context: typer.Context, out: Out = Path("demo")) -> None:
    """Without a name: the property demo."""
    if context.invoked_subcommand is None:
        property_demo(out)


@app.command("property")
def property_demo(out: Out = Path("demo")) -> None:
    """Predict the diameter of graphs and the distances from a node: A-DGN and two GCNs."""
    from adgn.cli.training_progress import show_training
    from adgn.experiments.transfer import CONTENDERS, contender_title
    from adgn.training import LearnedNothingWarning, train
    from adgn.training.config import merged
    from adgn.training.seeding import thread_count

    rows = []
    for task in TASKS:
        row = [task]
        for model, options in CONTENDERS.items():
            run_dir = out / f"{task}-{model}"
            if (run_dir / "config.toml").exists():  # of an earlier demo
                shutil.rmtree(run_dir)
            own = {
                "task": {"root": str(out / "data")},
                "model": {**options, **OWN_OPTIONS.get(model, {})},
            }
            settings: dict[str, Any] = {"run_dir": run_dir, **merged(DEMO_SETTINGS, own)}
            # Batches this small gain nothing from more threads, and a busy machine makes them wait.
            with thread_count(1), warnings.catch_warnings():
                # The table has the constant beside the plain GCN, which stays near it.
                warnings.simplefilter("ignore", LearnedNothingWarning)
                with show_training(f"{task} {model}") as (callback, preparing):
                    result = train(task, callbacks=[callback], progress=preparing, **settings)
            row.append(f"{result.score:.3f}")
        rows.append([*row, f"{result.constant['log10_mse']:.3f}"])
    titles = [contender_title(model) for model in CONTENDERS]
    print_table(["log10 of the test MSE (lower is better)", *titles, "constant"], rows)
    say(f"runs, weights and scores: {out}. In full: adgn train diameter")


@app.command()
def own(out: Out = Path("demo")) -> None:
    """Your own graph: two CSV files in, a model, its predictions and a page out."""
    import shlex

    from adgn.cli.fit import fit_model
    from adgn.cli.model_folder import GraphFiles, refuse_bad_input
    from adgn.data import example_tables
    from adgn.training.seeding import thread_count

    make_folder(out)
    tables = example_tables()
    nodes, edges = (Path(shutil.copy(path, out)) for path in (tables.nodes, tables.edges))
    target = "topic"
    words = ["adgn", "fit", nodes, edges, "--target", target, "--undirected", "--out", out / "own"]
    for section, values in OWN_SETTINGS.items():
        words += [w for key, value in values.items() for w in ("--set", f"{section}.{key}={value}")]
    command = shlex.join(map(str, words))
    say(f"\nYour own graph: papers, the citations between them, and a topic to predict.\n{command}")
    with thread_count(1), refuse_bad_input():  # as above: the graph is small
        fit_model(
            GraphFiles(nodes, edges, None, {"target_column": [target], "directed": False}),
            out / "own",
            command=command,
            settings=OWN_SETTINGS,
            test_size=0.2,
        )


@app.command()
def transfer(
    out: Out = Path("demo"),
    distance: Annotated[
        list[int] | None,
        Option(min=1, help="Edges between the ends; may be repeated. Default: 5, 10, 20 and 50."),
    ] = None,
    epochs: Annotated[int, Option(min=1, help="Passes over the train lines.")] = 10,
    seed: Annotated[int, Option(min=0, help="Seed of weights and data.")] = 0,
) -> None:
    """A number put on one end of a line must be reported at the other: A-DGN and two GCNs."""
    from adgn.cli.training_progress import show_training
    from adgn.experiments.transfer import DISTANCES, run_transfer
    from adgn.report.transfer import TRANSFER_COLUMNS, transfer_figure, transfer_rows

    @contextmanager
    def callbacks_for(label: str) -> "Iterator[Sequence[Callback]]":
        with show_training(label) as (callback, _):
            yield [callback]

    make_folder(out)
    outcomes = list(
        run_transfer(distance or DISTANCES, epochs=epochs, seed=seed, callbacks_for=callbacks_for)
    )
    print_table(TRANSFER_COLUMNS, transfer_rows(outcomes))
    picture = out / "transfer.png"
    transfer_figure(outcomes).savefig(picture, dpi=150)
    seconds = sum(outcome.seconds for outcome in outcomes)
    say(f"\nTrained {len(outcomes)} networks in {seconds:.0f} s. Picture: {picture}")
