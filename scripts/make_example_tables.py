"""Makes the tables of the tutorial from the raw files of Cora.

python scripts/make_example_tables.py --root DATA_ROOT   # write src/adgn/data/own/example

A paper has the number of dictionary words in it, and whether it has each of the 25 most frequent
words; the topic of every third paper is left empty and is in a table of its own.
"""

import argparse
from pathlib import Path

import numpy as np
from torch import Tensor

from adgn._util.files import write_file
from adgn.data import load
from adgn.data.own.example import FOLDER

WORDS = 25
# The raw files number the topics; the published sizes of the classes tell which is which.
TOPICS = {
    351: "Theory",
    217: "Reinforcement Learning",
    418: "Genetic Algorithms",
    818: "Neural Networks",
    426: "Probabilistic Methods",
    298: "Case Based",
    180: "Rule Learning",
}


def tables(x: Tensor, y: Tensor, edge_index: Tensor) -> dict[str, str]:
    """The text of each file by its name."""
    words = x.to_dense().numpy() != 0
    frequency = words.sum(axis=0)
    chosen = np.sort(np.argsort(-frequency, kind="stable")[:WORDS])
    names = [TOPICS[int(size)] for size in y.bincount()]
    unknown = np.zeros(len(y), dtype=bool)
    unknown[np.random.default_rng(0).permutation(len(y))[: len(y) // 3]] = True
    columns = ["id", "topic", "num_words", *(f"word_{word}" for word in chosen)]
    papers, answers = [columns], [["id", "topic"]]
    for paper, label in enumerate(y.tolist()):
        topic = names[label]
        if unknown[paper]:
            answers.append([f"p{paper}", topic])
        values = [str(int(words[paper].sum())), *(str(int(v)) for v in words[paper, chosen])]
        papers.append([f"p{paper}", "" if unknown[paper] else topic, *values])
    citations = [["source", "target"]]
    citations += [[f"p{a}", f"p{b}"] for a, b in edge_index.T.tolist() if a < b]
    rows = {"papers.csv": papers, "citations.csv": citations, "answers.csv": answers}
    return {name: "".join(",".join(row) + "\n" for row in lines) for name, lines in rows.items()}


def main() -> None:
    """Parse the arguments and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--root", type=Path, help="a data root; the usual one by default")
    data = load("cora", parser.parse_args().root)
    FOLDER.mkdir(exist_ok=True)
    for name, text in tables(data.x, data.y, data.edge_index).items():
        write_file(FOLDER / name, text.encode())


if __name__ == "__main__":
    main()
