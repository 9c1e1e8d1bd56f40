import pytest

from adgn.data import NODE_DATASETS
from adgn.data.node_datasets import PUBLIC_DATASETS, find_node_dataset
from adgn.data.raw_files import known_digests

# Nodes, edges, features, classes as the paper's table of statistics prints them.
PAPER_TABLE = {
    "computers": (13752, 491722, 767, 10),
    "photo": (7650, 238162, 745, 8),
    "pubmed": (19717, 88648, 500, 3),
    "physics": (34493, 495924, 8415, 5),
    "cs": (18333, 163788, 6805, 15),
}


def test_paper_table():
    stated = {
        entry.name: (entry.nodes, entry.edges, entry.features, entry.classes)
        for entry in NODE_DATASETS.values()
        if entry.in_paper_table
    }
    assert stated == PAPER_TABLE


def test_every_raw_file_belongs_to_an_entry_and_back():
    folders = [entry.folder for entry in PUBLIC_DATASETS.values()]
    for folder in folders:
        assert any(path.startswith(folder) for path in known_digests())
    for path, digest in known_digests().items():
        assert sum(path.startswith(folder) for folder in folders) == 1
        assert len(bytes.fromhex(digest)) == 32


def test_known_defects_are_told():
    assert "Texas" in " ".join(NODE_DATASETS["cornell"].defects)
    for name in ("chameleon", "squirrel"):
        assert "duplicated" in " ".join(NODE_DATASETS[name].defects)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Physics", "physics"),
        ("pubmde", "pubmed"),
        ("amazon-photo", "photo"),
        ("Coauthor-CS", "cs"),
        ("film", "actor"),
    ],
)
def test_unknown_names_suggest_the_right_one(wrong, right):
    with pytest.raises(ValueError, match=f"name={wrong!r}.*Did you mean {right!r}"):
        find_node_dataset(wrong)
