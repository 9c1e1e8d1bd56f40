import numpy as np
import pytest

from adgn.data import NODE_DATASETS, load
from adgn.tasks.protocols import (
    REACHED_PARTS,
    Conditions,
    Stopping,
    conditions_of,
    conditions_words,
    differences,
    direction_sentence,
    protocol_sentence,
    published_protocol,
    published_rows,
    rows_with_conditions_of_their_own,
)
from adgn.tasks.published import published_tables
from adgn.training import resolve_config

HETEROPHILIC = "heterophilic_benchmarks"
TABLES = list(published_tables())


@pytest.mark.parametrize("table", TABLES)
def test_every_published_row_has_a_protocol_in_words(table):
    for row in published_tables()[table]["rows"]:
        protocol = published_protocol(table, row)
        assert protocol.source
        assert all(conditions_words(protocol.conditions).values())
        assert protocol.source in protocol_sentence(protocol)


@pytest.mark.parametrize("table", TABLES)
def test_every_exception_is_a_row_of_its_table(table):
    exceptions = rows_with_conditions_of_their_own(table)
    assert set(exceptions) <= set(published_tables()[table]["rows"])


def test_some_rows_have_conditions_of_their_own():
    found = {table: len(rows_with_conditions_of_their_own(table)) for table in TABLES}
    assert found[HETEROPHILIC] > 10
    assert found["tree_neighbors_match"] == 1


@pytest.mark.parametrize("table", TABLES)
def test_rows_that_share_conditions_are_together_and_none_is_lost(table):
    rows = list(published_tables()[table]["rows"])
    grouped = [row for group, _ in published_rows(table, rows) for row in group]
    assert sorted(grouped) == sorted(rows)


def test_an_unknown_row():
    with pytest.raises(ValueError, match=r"row='GPRGN'.*GPRGNN"):
        published_protocol(HETEROPHILIC, "GPRGN")
    with pytest.raises(ValueError, match=r"row='A-DGN \(GIN\)'"):
        published_rows(HETEROPHILIC, ["GCN", "A-DGN (GIN)"])


def test_an_unknown_table():
    with pytest.raises(ValueError, match=r"table='heterophilic'.*heterophilic_benchmarks"):
        published_protocol("heterophilic", "GCN")


@pytest.mark.parametrize(
    ("row", "direction"),
    [("GGCN", "out"), ("GCN", "out"), ("GPRGNN", "in"), ("A-DGN", "in"), ("MLP", "any"),
     ("H2GCN", "undirected"), ("GraphSAGE", None), ("SDRF + Undirected", "undirected")],
)  # fmt: skip
def test_directions_of_the_heterophilic_table(row, direction):
    assert published_protocol(HETEROPHILIC, row).conditions.direction == direction


def test_the_paper_s_own_rows_are_measured_here_in_the_same_way():
    for task, table, row in (
        ("texas", HETEROPHILIC, "A-DGN"),
        ("photo", "graph_benchmarks", "A-DGN (GCN)"),
        ("sssp", "graph_property_prediction", "A-DGN ws"),
    ):
        ours = conditions_of(resolve_config(task))
        assert differences(published_protocol(table, row).conditions, ours) == (), task


def test_what_a_configuration_changes():
    def ours(name="texas", /, **sections):
        return conditions_of(resolve_config(name, sections))

    assert ours() == Conditions(
        "whole", "in", "geom-gcn", "as stored", Stopping(1500, 100, "accuracy")
    )
    assert ours(task={"normalize": True}).features == "rows sum to 1"
    assert ours(task={"largest_component": True}).graph == "largest component"
    assert ours(model={"direction": "both"}).direction == "both"
    assert ours(task={"transform": "reverse | digl:k=3"}).direction == "out"
    assert ours(task={"transform": "sdrf:undirected=true"}).direction == "undirected"
    released = "largest_component:kind=released"
    assert ours(task={"transform": released}).graph == "reached part"
    assert ours(model={"name": "mlp"}).direction == "any"
    assert ours(stopping={"monitor": "loss", "patience": 7}).stopping == Stopping(1500, 7, "loss")
    assert ours("photo").direction == "any"
    assert ours("cora", task={"splits": "public"}).splits == "public"
    assert ours("chameleon-filtered").direction == "any"
    assert ours("chameleon-filtered-directed").splits == "in the file"
    assert ours("tree-neighbors-match").direction == "in"


def test_differences_name_both_sides():
    published = published_protocol(HETEROPHILIC, "SDRF").conditions
    ours = conditions_of(resolve_config("texas", {"model": {"direction": "out"}}))
    told = " ".join(differences(published, ours, "texas"))
    for part in (
        "135 of 183 nodes; here, the whole graph",
        "Direction: published, not known; here, the targets of outgoing edges (out)",
        "one fixed test set, 100 seeds; here, Geom-GCN's ten",
        "Features: published, not known; here, as stored",
    ):
        assert part in told
    assert "Stopping" not in told  # nothing is known to differ


def test_a_row_without_directions_tells_none():
    ours = conditions_of(resolve_config("texas", {"model": {"name": "mlp"}}))
    assert direction_sentence(published_protocol(HETEROPHILIC, "MLP").conditions, ours) is None
    assert not any("Direction" in one for one in differences(Conditions(direction="out"), ours))
    turned = conditions_of(resolve_config("texas", {"model": {"direction": "both"}}))
    assert direction_sentence(None, turned).endswith("(both); not in the paper.")


@pytest.mark.parametrize("name", ["texas", "cornell", "wisconsin", "chameleon"])
def test_the_parts_that_are_reached_along_directed_edges(name, data_root):
    data = load(name, data_root)
    source, target = data.edge_index.numpy()
    following = [target[source == node] for node in range(data.num_nodes)]
    left, largest = set(range(data.num_nodes)), set()
    while left:
        first = min(left)
        part, waiting = {first}, [first]
        while waiting:
            new = set(following[waiting.pop()].tolist()) - part
            part |= new
            waiting += new
        largest = max(largest, part, key=len)
        left -= part
    inside = np.isin(source, list(largest)) & np.isin(target, list(largest))
    assert (len(largest), int(inside.sum())) == REACHED_PARTS[name]


def test_reached_parts_are_of_all_graphs_of_the_table():
    assert set(REACHED_PARTS) == {n for n, e in NODE_DATASETS.items() if e.splits == "geom-gcn"}
