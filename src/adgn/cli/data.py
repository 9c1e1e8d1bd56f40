"""`adgn data`: what data sets there are, making them ready, checking their files."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from adgn.cli.console import complain, console, print_table, progress_bar, say

app = typer.Typer(help="List, describe, prepare and verify data sets.", no_args_is_help=True)

Root = Annotated[
    Path | None,
    Option("--root", help="The data root. Default: $ADGN_DATA, else a folder in the user's cache."),
]
# The room `adgn.data` brings torch; it is imported in the commands so that --help stays quick.


@app.command("list")
def list_datasets(root: Root = None) -> None:
    """List all data sets and whether they are ready below the data root."""
    from adgn.data import CATALOGUE, NODE_DATASETS, data_root
    from adgn.data.root import cache_folder
    from adgn.data.supplied import is_available

    folder = data_root(root)
    rows = []
    for info in CATALOGUE.values():
        # The digits of a digest: other data sets have this name and a word more.
        pattern = f"{info.name}-{'[0-9a-f]' * 12}.safetensors"
        prepared = any(cache_folder(folder).glob(pattern))
        ready = ("yes" if prepared else "no") if info.on_disk else "made in memory"
        if info.name in NODE_DATASETS and not is_available(info.name, folder):
            ready = "no file"
        rows.append((info.name, info.task, info.summary, ready))
    print_table(("name", "task", "what it is", "ready"), rows)
    say(f"data root: {folder}")


@app.command()
def info(name: Annotated[str, Argument(help="A name from `adgn data list`.")]) -> None:
    """Describe a data set: statistics, splits, known defects, how to load it."""
    from adgn.data import find_dataset

    dataset = find_dataset(name)
    say(f"{dataset.name}: {dataset.summary}\ntask: {dataset.task}")
    for key, value in dataset.statistics.items():
        say(f"{key}: {value}")
    for defect in dataset.defects:
        complain(defect, "known defect", "yellow", to=console())
    say(f"in Python: {dataset.usage}")


@app.command()
def prepare(
    names: Annotated[list[str] | None, Argument(help="Names from `adgn data list`.")] = None,
    every: Annotated[bool, Option("--all", help="Prepare every data set.")] = False,
    root: Root = None,
) -> None:
    """Make data sets ready on disk: download where needed, check, convert or generate."""
    from adgn.data import CATALOGUE, NODE_DATASETS, find_dataset
    from adgn.data import prepare as prepare_dataset
    from adgn.data.supplied import is_available

    if bool(names) == every:
        raise typer.BadParameter("give one or more names, or --all")
    chosen = list(CATALOGUE) if every else names or []
    for name in chosen:  # all names are checked before any work is done
        find_dataset(name)
    for name in chosen:
        if not CATALOGUE[name].on_disk:
            say(f"{name}: made in memory, nothing to prepare")
            continue
        if every and name in NODE_DATASETS and not is_available(name, root):
            say(f"{name}: left out, {NODE_DATASETS[name].file} is not in the data root")
            continue
        start = time.perf_counter()
        with progress_bar(name) as progress:
            prepare_dataset(name, root, progress)
        say(f"{name}: ready ({time.perf_counter() - start:.1f} s)")


@app.command()
def verify(
    names: Annotated[
        list[str] | None, Argument(help="Names from `adgn data list`; default: all.")
    ] = None,
    root: Root = None,
) -> None:
    """Check raw and prepared files by checksum; exit with 1 where one is damaged.

    Files that are missing are an error only for data sets that were named.
    """
    from adgn.data import CATALOGUE, find_dataset
    from adgn.data import verify as verify_dataset

    chosen = names or list(CATALOGUE)
    for name in chosen:
        find_dataset(name)
    rows, problems = [], []
    for name in chosen:
        states = verify_dataset(name, root)
        usable = any(state.role == "prepared" and state.state == "ok" for state in states)
        if names and CATALOGUE[name].on_disk and not states:
            problems.append(f"{name} is not prepared; run `adgn data prepare {name}`")
        counts = Counter((state.role, state.state) for state in states)
        text = ", ".join(f"{n} {role} {state}" for (role, state), n in counts.items())
        nothing = "not prepared" if CATALOGUE[name].on_disk else "made in memory"
        rows.append((name, text or nothing))
        problems += [
            state.detail
            for state in states
            if state.state == "damaged" or (state.state == "missing" and names and not usable)
        ]
    print_table(("name", "files"), rows)
    for problem in problems:
        complain(problem)
    if problems:
        raise typer.Exit(1)
