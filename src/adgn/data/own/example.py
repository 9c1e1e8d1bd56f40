"""A small real graph as CSV files, for the tutorial and for trying things out."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "example"


class ExampleTables(NamedTuple):
    """Where the tables of the example are."""

    nodes: Path
    edges: Path
    answers: Path


def example_tables() -> ExampleTables:
    """Scientific papers and the citations between them: a part of Cora as three CSV files.

    A paper has an id, the number of dictionary words in it (`num_words`), whether it has each of 25
    frequent words, and one of seven topics, empty for every third paper. The topics of those are in
    the table of answers. Citations are listed once and have no direction.

    Example:
        >>> from adgn.data import Graph
        >>> nodes, edges, answers = example_tables()
        >>> nodes.name, edges.name, answers.name
        ('papers.csv', 'citations.csv', 'answers.csv')
        >>> Graph.from_tables(nodes, edges, target_column="topic", directed=False)
        Graph(2,708 nodes, 10,556 edges, undirected, 26 columns, target: topic,
              1,806 of 2,708 nodes labelled)
    """
    return ExampleTables(FOLDER / "papers.csv", FOLDER / "citations.csv", FOLDER / "answers.csv")
