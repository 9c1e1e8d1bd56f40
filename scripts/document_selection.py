"""Writes the generated parts of docs/selection.md: worked example, halving, its misses, scaling.

python scripts/document_selection.py           # print
python scripts/document_selection.py --write   # write docs/selection.md
"""

import json
from pathlib import Path
from typing import Any

from pages import fill_places, markdown_table, print_or_write

from adgn.report.numbers import number_format

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "selection.md"
FIGURES = ROOT / "results" / "selection.json"
HALVING = ROOT / "results" / "halving.json"
MISSES = ROOT / "results" / "halving-misses.json"


def duration(seconds: float) -> str:
    """Minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def example(results: dict[str, Any]) -> str:
    """What the example printed, and how long it took."""
    trials, runs = results["trials"]["total"], results["runs_per_trial"]
    accuracy = results["test"]["accuracy"]
    lines = ["```text", *results["output"], "```", ""]
    lines += [
        f"So the {trials} trials of {runs} runs each and the test scores took "
        f"**{duration(results['seconds'])}**, and the reported test accuracy is "
        f"**{100 * accuracy['mean']:.2f} ± {100 * accuracy['std']:.2f} %**.",
        "",
        f"{results['machine']}, torch {results['torch']}, {results['date']}, commit "
        f"{results['commit']}: `{results['command']}`.",
    ]
    return "\n".join(lines)


def scaling(results: dict[str, Any]) -> str:
    """Two workers against one in a table."""
    rows = [
        [
            str(number),
            name,
            f"{entry[name]['trials']:.1f} s",
            f"{entry[name]['whole']:.1f} s",
            f"{entry[name]['cpu']:.1f} s",
        ]
        for number, entry in enumerate(results["rounds"], start=1)
        for name in ("one", "two")
    ]
    ratio = results["two_over_one"]
    rows.append(
        [
            *("median of two / one", ""),
            f"**{ratio['trials']:.2f}**",
            f"**{ratio['whole']:.2f}**",
            f"{ratio['cpu']:.2f}",
        ]
    )
    head = ["round", "workers", "first start to last end of a trial", "whole command"]
    table = markdown_table([*head, "processor time"], rows)
    return (
        f"Two workers take {ratio['trials']:.2f} of the time that one takes for the trials, and "
        f"{ratio['whole']:.2f} for the whole command.\n\n{table}\n"
        f"{results['trials']} trials of graph transfer with {results['runs_per_trial']} runs of "
        f"{results['epochs']} epochs each, one thread per worker. The whole command has the start "
        "of the workers and the test scores in it, which two workers do not speed up; and with few "
        "trials one worker waits for the other's last. Rounds in which other programs used the "
        "cores do not count. "
        f"{results['machine']}, torch {results['torch']}, {results['date']}, commit "
        f"{results['commit']}: `{results['command']}`."
    )


def halving(results: dict[str, Any]) -> str:
    """Halving beside the full search in a table."""
    replayed, real = results["replay"], results["real"]
    rows = [
        [
            f"full search, seed {full['seed']}",
            f"{full['epochs']:,}",
            f"{full['seconds']:,.0f} s",
            f"{100 * full['score']:.2f} ± {100 * full['standard_error']:.2f} %",
            "",
        ]
        for full in replayed["full"]
    ]
    full = replayed["full"][0]
    for search in replayed["halving"]:
        rows.append(
            [
                f"halving, seed {search['seed']}, split {search['first_split']} first",
                f"{search['epochs']:,} (1/{search['epochs_ratio']:.1f})",
                f"{search['seconds']:,.0f} s (1/{search['seconds_ratio']:.1f})",
                f"{100 * search['score_in_full_search']:.2f} %",
                "yes" if search["within_one_standard_error"] else "no",
            ]
        )
    table = markdown_table(
        ["", "epochs", "processor time", "validation accuracy", "within one standard error"], rows
    )
    rungs = ", ".join(
        f"{rung['configurations']} configurations to {rung['epochs']} epochs"
        + (f" on {rung['runs']} splits" if rung["runs"] > 1 else "")
        for rung in replayed["halving"][0]["rungs"]
    )
    same = "had the same trials" if real["same_trials"] else "did not have the same trials"
    if "same_selection" in real:
        same += f", selected {'the same' if real['same_selection'] else 'another'} configuration"
    searches = replayed["halving"]
    shares = [search["epochs_ratio"] for search in searches]
    within = sum(search["within_one_standard_error"] for search in searches)
    return (
        f"Halving took 1/{max(shares):.1f} to 1/{min(shares):.1f} of the epochs of the full "
        f"search, and selected a configuration within one standard error of its choice in {within} "
        f"of {len(searches)} searches.\n\n{table}\n"
        f"A-DGN on Texas, {full['configurations']} configurations of the paper's grid (128 units, "
        f"8 and 16 layers) on {full['runs']} splits. Rungs: {rungs}. The accuracy is that of the "
        "selected configuration in the full search of the same seed, the mean over the splits ± "
        "its standard error. Halving was replayed on the learning curves of the full searches; the "
        f"first row of it was also run in earnest, which {same} and "
        f"in {real['trials_with_the_replayed_score']} of {real['trials']} the replayed score. "
        f"{replayed['machine']}, torch {replayed['torch']}, {replayed['date']}, commit "
        f"{replayed['commit']}: `{replayed['command']}`."
    )


def misses(results: dict[str, Any]) -> str:
    """Configurations that searches ended early, with the full protocol, in a table."""
    form, runs = number_format(""), results["runs"]
    better = [run for run in runs if run["validation"] < run["selected_score"]]
    cells = {(run["row"], run["task"]) for run in runs}
    lost = {(run["row"], run["task"]) for run in better}

    def settings(values: dict[str, float]) -> str:
        names = {"model.epsilon": "ε", "model.gamma": "γ"}
        return ", ".join(f"{names[name]} = {value:g}" for name, value in values.items())

    rows = []
    for run in runs:
        ended = "not kept"
        if run["ended_after"] is not None:
            ended = f"{form.plain(run['ended_with'])} after {run['ended_after']}"
        rows.append(
            [
                f"{run['title']}, {run['task']}",
                settings(run["settings"]),
                ended,
                f"{form.plain(run['validation'])} ({form.plain(run['test'])})",
                f"{settings(run['selected'])}: {form.plain(run['selected_score'])} "
                f"({form.plain(run['selected_test'])})",
                "–" if run["published"] is None else form.plain(run["published"]),
            ]
        )
    head = ["cell", "ended early", "then", "with the full protocol", "selected", "published"]
    said = (
        f"Of {len(runs)} such configurations {len(better)} "
        f"{'has' if len(better) == 1 else 'have'} a better validation score than the selected one "
        f"when trained by the full protocol, in {len(lost)} of {len(cells)} searches"
    )
    if better:
        most = max(better, key=lambda run: run["selected_score"] - run["validation"])
        gain = form.plain(most["selected_score"] - most["validation"])
        said += f"; by {gain} at most ({most['title']}, {most['task']})"
    return (
        f"{said}.\n\n{markdown_table(head, rows)}\n"
        "Log10 of the mean squared error on the validation graphs and, in brackets, on the test "
        "graphs, of one initialisation; lower is better. Published: the mean of four on the test "
        "graphs. Of the configurations that searches of "
        "[the table](results.md#graph-property-prediction) ended early, or of all others where a "
        "search did not keep what it compared, those with the selected step size or a smaller one "
        "down to 0.1; others were not tried. By `python benchmarks/halving_misses.py`."
    )


def sections() -> dict[str, str]:
    """The generated parts by the name of their place in the page."""
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    return {
        "example": example(figures["texas"]),
        "halving": halving(json.loads(HALVING.read_text(encoding="utf-8"))),
        "misses": misses(json.loads(MISSES.read_text(encoding="utf-8"))),
        "scaling": scaling(figures["scaling"]),
    }


def page(text: str) -> str:
    """The page with its generated parts as they must be now."""
    return fill_places(text, sections(), PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
