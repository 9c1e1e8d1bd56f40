"""The tables of the tutorial are those that the script makes."""

import make_example_tables

from adgn.data import Graph, Preprocessing, TargetEncoder, example_tables, load


def test_the_shipped_tables_are_those_of_the_script(data_root):
    data = load("cora", data_root)
    made = make_example_tables.tables(data.x, data.y, data.edge_index)
    for path in example_tables():
        assert made[path.name] == path.read_text(encoding="utf-8")


def test_the_answers_are_about_the_papers_without_a_topic():
    nodes, edges, answers = example_tables()
    assert sum(path.stat().st_size for path in example_tables()) < 300_000
    graph = Graph.from_tables(nodes, edges, target_column="topic", directed=False)
    known = Graph.from_tables(answers, None, target_column="topic")
    labelled = {graph.ids[row].as_py() for row in graph.labelled.tolist()}
    assert not labelled & set(known.ids.to_pylist())
    assert len(labelled) + known.num_nodes == graph.num_nodes
    encoder = TargetEncoder.fit(graph)
    assert encoder.num_outputs == 7
    assert (encoder.encode(known) >= 0).all()
    kinds = [row.kind for row in Preprocessing.fit(graph).decisions()]
    assert kinds == ["number", "0/1"]
