"""Writes the generated part of docs/reproducing.md: how the published numbers were measured.

python scripts/document_protocols.py           # print
python scripts/document_protocols.py --write   # write docs/reproducing.md
"""

from pathlib import Path

from pages import fill_places, markdown_table, print_or_write

from adgn.experiments.tables import EXPERIMENTS
from adgn.tasks.protocols import conditions_words, published_rows
from adgn.tasks.published import published_tables

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reproducing.md"
# The experiment that measures a published table.
EXPERIMENTS_OF = {
    "graph_property_prediction": "property",
    "graph_benchmarks": "benchmarks",
    "heterophilic_benchmarks": "heterophily",
    "tree_neighbors_match": "trees",
}


def protocols() -> str:
    """A table of all published rows, those with the same conditions in one line, and remarks."""
    lines, remarks = [], []
    for table, experiment in EXPERIMENTS_OF.items():
        title = EXPERIMENTS[experiment].title
        rows = list(published_tables()[table]["rows"])
        groups = published_rows(table, rows)
        for names, protocol in groups:
            shown = "all" if len(groups) == 1 else ", ".join(names)
            words = conditions_words(protocol.conditions)
            lines.append([title, shown, protocol.source, *words.values()])
            if protocol.remarks:
                remarks.append(f"- {shown}: {' '.join(protocol.remarks)}")
    head = ["table", "rows", "measured by", "graph", "nodes hear", "splits", "features", "stopping"]
    return markdown_table(head, lines) + "\n" + "\n".join(remarks) + "\n"


def page(text: str) -> str:
    """docs/reproducing.md as it must be now."""
    return fill_places(text, {"protocols": protocols()}, PAGE)


if __name__ == "__main__":
    print_or_write(__doc__, PAGE, lambda: page(PAGE.read_text(encoding="utf-8")))
