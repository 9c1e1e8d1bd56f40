"""The README of a model folder: a model card."""

from typing import TYPE_CHECKING

from adgn._version import __version__

if TYPE_CHECKING:
    from adgn.estimators.base import GraphEstimator

_PIPELINE = {"classification": "tabular-classification", "regression": "tabular-regression"}


def model_card(estimator: "GraphEstimator") -> str:
    """Markdown with a header of metadata, as the Hugging Face Hub reads it."""
    encoder, sizes = estimator.encoder_, estimator.sizes_
    target = ", ".join(encoder.names)
    lines = [
        "---",
        "library_name: adgn",
        f"pipeline_tag: {_PIPELINE[estimator.kind]}",
        "tags:",
        "- graph-machine-learning",
        f"- {estimator.level}-{estimator.kind}",
        "---",
        "",
        f"# {type(estimator).__name__}: {target}",
        "",
        f"Predicts {target!r} of {estimator.level}s. Made with adgn {__version__}.",
        "",
        "```python",
        "import adgn",
        "",
        'model = adgn.load("path/to/this/folder")',
        "model.predictions(graph)  # an adgn.Graph, or PyG data",
        "```",
        "",
        "## Scores",
        "",
        f"Of {sum(sizes):,} labelled {estimator.level}s {sizes[0]:,} trained, {sizes[1]:,} "
        f"validated and {sizes[2]:,} were held out; chosen {estimator.split_rule_}. Models were "
        "chosen by the validation score, which is therefore a little too good.",
        "",
        "| score | validation | held out |",
        "|---|---:|---:|",
    ]
    for name, value in estimator.validation_scores_.items():
        lines.append(f"| {name} | {_number(value)} | {_number(estimator.test_scores_.get(name))} |")
    lines += ["", "## Data", "", estimator.data_, ""]
    lines += [f"- {note}" for note in estimator.notes_]
    if encoder.classes:
        shown = ", ".join(str(label) for label in encoder.classes[:20])
        more = f" and {len(encoder.classes) - 20} more" if len(encoder.classes) > 20 else ""
        lines += ["", f"Classes: {shown}{more}."]
    lines += ["", "| column | kind | features | missing | note |", "|---|---|---:|---:|---|"]
    for row in estimator.preprocessing_.decisions():
        cells = [str(cell).replace("|", "\\|").replace("\n", " ") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "## Models",
        "",
        "The prediction is the weighted average of the models with a weight, chosen one after "
        "another by their validation loss.",
        "",
        "| model | direction | validation | weight | epochs | seconds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for tried in estimator.tried():
        lines.append(
            f"| {tried['name']} | {tried['direction']} | {_number(tried['score'])} | "
            f"{tried['weight']:.2f} | {tried['epochs']} | {tried['seconds']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.4f}"
