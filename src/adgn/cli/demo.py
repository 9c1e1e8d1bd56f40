"""`adgn demo`: see in a few minutes what the method is for."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adgn.cli.console import console, make_folder, print_table
from adgn.cli.demo_property import property_demo

if TYPE_CHECKING:
    from adgn.training import Callback

app = typer.Typer(help="See what the method is for, in a few minutes.")

Out = Annotated[
    Path, typer.Option(help="Where everything it makes goes.", file_okay=False, writable=True)
]


@app.callback(invoke_without_command=True)
def demo(context: typer.Context, out: Out = Path("demo")) -> None:
    """Without a name: the property demo."""
    if context.invoked_subcommand is None:
        property_demo(out)


@app.command("property")
def property_(out: Out = Path("demo")) -> None:
    """Predict the diameter of graphs and the distances from a node: A-DGN and GCN."""
    property_demo(out)


@app.command()
def transfer(
    out: Out = Path("demo"),
    distance: Annotated[
        list[int] | None,
        typer.Option(
            min=1, help="Edges between the ends; may be repeated. Default: 5, 10, 20 and 50."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the train lines.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and data.")] = 0,
) -> None:
    """A number put on one end of a line must be reported at the other: A-DGN and GCN."""
    from adgn.cli.training_progress import shown_progress
    from adgn.experiments.transfer import DISTANCES, run_transfer
    from adgn.report.transfer import TRANSFER_COLUMNS, transfer_figure, transfer_rows

    @contextmanager
    def callbacks_for(label: str) -> "Iterator[Sequence[Callback]]":
        with shown_progress(label) as shown:
            yield [shown.callback]

    make_folder(out)
    outcomes = list(
        run_transfer(distance or DISTANCES, epochs=epochs, seed=seed, callbacks_for=callbacks_for)
    )
    print_table(TRANSFER_COLUMNS, transfer_rows(outcomes))
    picture = out / "transfer.png"
    transfer_figure(outcomes).savefig(picture, dpi=150)
    seconds = sum(outcome.seconds for outcome in outcomes)
    console().print(f"\nTrained {len(outcomes)} networks in {seconds:.0f} s. Picture: {picture}")
