"""Graphs from tables: what is taken for what, and every kind of wrong input."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import torch

from adgn.data import Graph, GraphInputError, Preprocessing, TargetEncoder, load

PEOPLE = {"id": ["ann", "bob", "cy", "dee"], "age": [31, 45, 27, 60], "buys": [1, 0, None, 1]}
KNOWS = {"source": ["ann", "bob", "cy"], "target": ["bob", "cy", "ann"]}


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_edges_are_joined_by_id():
    graph = Graph.from_tables(PEOPLE, KNOWS, target_column="buys")
    assert graph.ids.to_pylist() == PEOPLE["id"]
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]
    assert graph.node_columns.column_names == ["age"]
    assert graph.target.to_pydict() == {"buys": [1, 0, None, 1]}
    assert graph.labelled.tolist() == [0, 1, 3]


@pytest.mark.parametrize("ids", [[10, 7, -3], ["x", "y", "NA"], ["007", "7", "a b"]])
def test_ids_are_any_text_or_numbers(tmp_path, ids):
    nodes = write(tmp_path / "nodes.csv", "id,v\n" + "".join(f"{i},1\n" for i in ids))
    edges = write(tmp_path / "edges.csv", f"source,target\n{ids[2]},{ids[0]}\n{ids[1]},{ids[2]}\n")
    graph = Graph.from_tables(nodes, edges)
    assert graph.ids.to_pylist() == ids
    assert graph.edge_index.tolist() == [[2, 1], [0, 2]]


def test_text_and_numbers_are_joined_as_text():
    graph = Graph.from_tables({"id": ["1", "x"]}, {"source": [1], "target": ["x"]})
    assert graph.edge_index.tolist() == [[0], [1]]


@pytest.mark.parametrize("names", [("src", "dst"), ("From", "To"), ("u", "v")])
def test_ends_are_found_by_usual_names(names):
    edges = {"kind": ["a", "b"], names[0]: [1, 2], names[1]: [2, 1]}
    graph = Graph.from_tables({"node_id": [1, 2]}, edges)
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert any(repr(names[0]) in note and repr(names[1]) in note for note in graph.notes)
    assert any("'node_id' is taken as the id" in note for note in graph.notes)


def test_first_columns_are_taken_where_no_name_is_usual():
    graph = Graph.from_tables({"person": [1, 2]}, {"a": [1], "b": [2]})
    assert any("first column, 'person'" in note for note in graph.notes)
    assert any("first two columns, 'a' and 'b'" in note for note in graph.notes)


def test_columns_that_may_be_meant_are_not_guessed():
    with pytest.raises(GraphInputError, match=r"several columns .*'node_id', 'node'; say which"):
        Graph.from_tables({"node": [1], "node_id": [1]}, None)
    edges = {"source": [1], "target": [1], "from": [1], "to": [1]}
    with pytest.raises(GraphInputError, match="several pairs of columns"):
        Graph.from_tables({"id": [1]}, edges)
    with pytest.raises(GraphInputError, match="source was given without target"):
        Graph.from_tables({"id": [1]}, edges, source="from")
    graph = Graph.from_tables({"id": [1]}, edges, source="from", target="to")
    assert graph.edge_columns.column_names == ["source", "target"]


@pytest.mark.parametrize(
    ("option", "value", "near"),
    [
        ("target_column", "buy", "buys"),
        ("id", "idd", "id"),
        ("features", ["agee"], "age"),
        ("groups", "aeg", "age"),
        ("ignore", ["agge"], "age"),
        ("categories", ["agge"], "age"),
    ],
)
def test_an_unknown_column_is_told_with_the_nearest(option, value, near):
    with pytest.raises(GraphInputError, match=f"{option}=.* Did you mean '{near}'"):
        Graph.from_tables(PEOPLE, KNOWS, **{option: value})


def test_edges_that_name_unknown_nodes(tmp_path):
    nodes = write(tmp_path / "nodes.csv", "id\nann\nbob\n")
    edges = write(tmp_path / "edges.csv", "source,target\nann,bob\nbob,zoe\nann,yan\n")
    message = (
        r"edges.csv, column 'target': 2 edge\(s\) name a node that nodes.csv does not have: "
        r"'zoe' at line 3; 'yan' at line 4. Add these nodes to nodes.csv, or remove the edges"
    )
    with pytest.raises(GraphInputError, match=message):
        Graph.from_tables(nodes, edges)
    with pytest.raises(GraphInputError, match=r"5 at row 1 \(from 0\)"):
        Graph.from_tables({"id": [0, 1, 2]}, {"source": [0, 5], "target": [1, 2]})
    with pytest.raises(GraphInputError, match=r"-1 at row 0"):
        Graph.from_tables({"id": [0, 1, 2]}, {"source": [-1], "target": [1]})


def test_duplicate_ids(tmp_path):
    nodes = write(tmp_path / "nodes.csv", "id,v\na,1\nb,2\na,3\na,4\n")
    edges = write(tmp_path / "edges.csv", "source,target\na,b\n")
    message = r"nodes.csv, column 'id': 2 row\(s\) repeat .* 'a' at line 2 and line 4; 'a' at line"
    with pytest.raises(GraphInputError, match=message):
        Graph.from_tables(nodes, edges)


def test_missing_ids(tmp_path):
    nodes = write(tmp_path / "nodes.csv", "id,v\na,1\n,2\n")
    with pytest.raises(GraphInputError, match=r"missing in 1 row\(s\), first at line 3"):
        Graph.from_tables(nodes, None)
    with pytest.raises(GraphInputError, match=r"column 'target': the id is missing"):
        Graph.from_tables({"id": [1]}, {"source": [1], "target": pa.array([None], pa.int64())})


def test_ids_that_are_not_whole_numbers():
    with pytest.raises(GraphInputError, match="not whole"):
        Graph.from_tables({"id": [1.5, 2.0]}, None)
    assert Graph.from_tables({"id": [1.0, 2.0]}, None).ids.to_pylist() == [1, 2]


def test_a_graph_without_edges_is_asked_for(tmp_path):
    edges = write(tmp_path / "edges.csv", "source,target\n")
    with pytest.raises(GraphInputError, match=r"edges.csv has a header and no rows.*edges=None"):
        Graph.from_tables(PEOPLE, edges)
    graph = Graph.from_tables(PEOPLE, None)
    assert graph.num_edges == 0
    assert any("no edges were given" in note for note in graph.notes)


def test_empty_tables(tmp_path):
    empty = write(tmp_path / "empty.csv", "")
    header = write(tmp_path / "header.csv", "id,age\n")
    with pytest.raises(GraphInputError, match=r"empty.csv' is empty"):
        Graph.from_tables(empty, KNOWS)
    with pytest.raises(GraphInputError, match=r"header.csv has a header and no rows"):
        Graph.from_tables(header, KNOWS)


def test_weights_are_found_and_checked(tmp_path):
    edges = {**KNOWS, "Weight": [1.0, 2.0, 3.0]}
    graph = Graph.from_tables(PEOPLE, edges)
    assert graph.edge_weight.tolist() == [1, 2, 3]
    assert any("'Weight' is taken as the weight" in note for note in graph.notes)
    assert Graph.from_tables(PEOPLE, edges, ignore=["Weight"]).edge_weight is None
    for value, what in ((None, "missing"), (float("inf"), "infinite"), (-1.0, "negative")):
        wrong = {**KNOWS, "weight": [1.0, value, 3.0]}
        with pytest.raises(
            GraphInputError, match=f"'weight': 1 weight.s. are {what}, first at row 1"
        ):
            Graph.from_tables(PEOPLE, wrong)
    with pytest.raises(GraphInputError, match=r"are not numbers but string, such as 'x'"):
        Graph.from_tables(PEOPLE, {**KNOWS, "weight": ["x", "y", "z"]})


def test_columns_that_name_edges_are_left_out():
    graph = Graph.from_tables(PEOPLE, {**KNOWS, "Id": [5, 6, 7], "kind": ["a", "b", "a"]})
    assert graph.edge_columns.column_names == ["kind"]
    assert "edges: column 'Id' names the edges and is left out" in graph.notes
    repeated = Graph.from_tables(PEOPLE, {**KNOWS, "key": [1, 2, 1]})
    assert repeated.edge_columns.column_names == ["key"]


def test_direction_as_gephi_writes_it():
    for kind, directed in (("Undirected", False), ("Directed", True)):
        graph = Graph.from_tables(PEOPLE, {**KNOWS, "Type": [kind] * 3})
        assert graph.directed is directed
        assert graph.edge_columns is None
        assert any("as column 'Type' says" in note for note in graph.notes)
    with pytest.raises(GraphInputError, match="some edges are directed and some are not"):
        Graph.from_tables(PEOPLE, {**KNOWS, "Type": ["Directed", "Directed", "Undirected"]})


def test_columns_for_splits_are_no_features():
    nodes = {
        **PEOPLE,
        "city": ["a", "a", "b", "b"],
        "year": [1, 2, 3, 4],
        "part": ["train", "Val", None, "test"],
    }
    graph = Graph.from_tables(nodes, KNOWS, groups="city", time="year", split="part")
    assert graph.groups.to_pylist() == ["a", "a", "b", "b"]
    assert graph.time.to_pylist() == [1, 2, 3, 4]
    assert graph.split.to_pylist() == ["train", "valid", None, "test"]
    assert graph.node_columns.column_names == ["age", "buys"]
    nodes["part"] = ["train", "dev", None, "test"]
    with pytest.raises(GraphInputError, match=r"column 'part' says 'dev' for 'bob'"):
        Graph.from_tables(nodes, KNOWS, split="part")


def test_what_is_left_out_is_counted():
    graph = Graph.from_tables(PEOPLE, KNOWS, ignore=["age"])
    assert graph.node_columns.column_names == ["buys"]
    assert "nodes: 1 column(s) left out as asked: 'age'" in graph.notes
    chosen = Graph.from_tables(PEOPLE, KNOWS, features=["age"])
    assert "nodes: 1 column(s) left out as asked: 'buys'" in chosen.notes


def test_row_numbers_of_a_data_frame_are_left_out(tmp_path):
    nodes = write(tmp_path / "nodes.csv", ",id,age\n0,a,5\n1,b,6\n")
    graph = Graph.from_tables(nodes, {"source": ["a"], "target": ["b"]})
    assert graph.node_columns.column_names == ["age"]
    assert any("counts the rows is left out" in note for note in graph.notes)


def test_numbers_that_are_names_of_categories():
    graph = Graph.from_tables(PEOPLE, {**KNOWS, "line": [1, 2, 1]}, categories=["age", "line"])
    assert graph.node_columns.column("age").to_pylist() == ["31", "45", "27", "60"]
    assert graph.edge_columns.column("line").to_pylist() == ["1", "2", "1"]


def test_a_target_is_no_feature_and_no_id():
    with pytest.raises(GraphInputError, match="'buys' is a feature and the target"):
        Graph.from_tables(PEOPLE, KNOWS, target_column="buys", features=["age", "buys"])
    with pytest.raises(GraphInputError, match="'id' is the target and the id"):
        Graph.from_tables(PEOPLE, KNOWS, target_column="id")


MANY = {
    "id": ["a", "b", "a", "c", "b"],
    "molecule": ["m2", "m2", "m1", "m1", "m2x"],
    "mass": [1.0, 2.0, 3.0, 4.0, 5.0],
    "toxic": [1, 1, 0, 0, None],
}
BONDS = {"molecule": ["m1", "m2"], "source": ["a", "b"], "target": ["c", "a"]}


def test_many_graphs_with_ids_that_are_unique_within_each():
    graph = Graph.from_tables(MANY, BONDS, graph="molecule", target_column="toxic", directed=False)
    assert graph.graph_ids.to_pylist() == ["m2", "m1", "m2x"]
    assert graph.graph_of_node.tolist() == [0, 0, 1, 1, 2]
    assert graph.edge_index.tolist() == [[1, 0, 2, 3], [0, 1, 3, 2]]
    assert graph.level == "graph"
    assert graph.target.to_pydict() == {"toxic": [1, 0, None]}
    assert any("graphs are predicted" in note for note in graph.notes)


def test_nodes_of_a_graph_are_put_beside_one_another():
    nodes = {"id": [1, 2, 3, 4], "g": ["p", "q", "p", "q"], "v": [10, 20, 30, 40]}
    edges = {"source": [1, 4], "target": [3, 2], "kind": ["x", "y"]}
    graph = Graph.from_tables(nodes, edges, graph="g", target_column="v")
    assert graph.ids.to_pylist() == [1, 3, 2, 4]
    assert graph.level == "node"
    assert graph.target.to_pydict() == {"v": [10, 30, 20, 40]}
    assert graph.edge_index.tolist() == [[0, 3], [1, 2]]
    assert graph.edge_ends.tolist() == [[0, 3], [1, 2]]


def test_targets_from_a_table_of_graphs():
    graphs = {"molecule": ["m1", "m2"], "toxic": ["no", "yes"], "lab": ["x", "y"], "made": [1, 2]}
    nodes = {name: MANY[name] for name in ("id", "molecule", "mass")}
    graph = Graph.from_tables(
        nodes, BONDS, graph="molecule", graphs=graphs, target_column="toxic", groups="lab"
    )
    assert graph.level == "graph"
    assert graph.target.to_pydict() == {"toxic": ["yes", "no", None]}
    assert graph.groups.to_pylist() == ["y", "x", None]
    assert any("1 of 3 graphs have no row" in note for note in graph.notes)
    assert any("1 column(s) are not used" in note for note in graph.notes)
    graphs["molecule"] = ["m1", "other"]
    with pytest.raises(GraphInputError, match=r"graphs: 1 row\(s\) name a graph that nodes"):
        Graph.from_tables(nodes, BONDS, graph="molecule", graphs=graphs, target_column="toxic")
    with pytest.raises(GraphInputError, match="without graph='…'"):
        Graph.from_tables({"id": [1]}, None, graphs=graphs, target_column="toxic")


def test_the_target_of_graphs_is_no_feature_of_their_nodes():
    graphs = {"molecule": ["m1", "m2"], "toxic": ["no", "yes"]}
    answer = ["yes" if name == "m2" else "no" for name in MANY["molecule"]]
    nodes = {**{name: MANY[name] for name in ("id", "molecule", "mass")}, "toxic": answer}
    graph = Graph.from_tables(nodes, BONDS, graph="molecule", graphs=graphs, target_column="toxic")
    assert graph.node_columns.column_names == ["mass"]
    assert any("'toxic' left out" in note for note in graph.notes)


@pytest.mark.parametrize("sign", ["\\t", "tab", "\t"])
def test_a_tab_as_it_is_typed(tmp_path, sign):
    path = tmp_path / "nodes.csv"
    path.write_text("id\tsize\n1\t2\n2\t3\n")
    graph = Graph.from_tables(path, None, delimiter=sign)
    assert graph.node_columns.to_pydict() == {"size": [2, 3]}


@pytest.mark.parametrize("name", ["delimiter", "decimal"])
def test_signs_of_more_than_one_letter_are_refused(tmp_path, name):
    path = tmp_path / "nodes.csv"
    path.write_text("id,size\n1,2\n")
    with pytest.raises(GraphInputError, match=f"{name}=';;' is not one sign"):
        Graph.from_tables(path, None, **{name: ";;"})


def test_edges_of_many_graphs_that_are_wrong():
    without = {name: BONDS[name] for name in ("source", "target")}
    with pytest.raises(GraphInputError, match="the same id in several graphs"):
        Graph.from_tables(MANY, without, graph="molecule")
    unknown = {**BONDS, "molecule": ["m1", "m9"]}
    with pytest.raises(GraphInputError, match="'m9' at row 1"):
        Graph.from_tables(MANY, unknown, graph="molecule")
    elsewhere = {**BONDS, "target": ["c", "c"]}  # c is a node of m1, not of m2
    with pytest.raises(GraphInputError, match=r"column 'target': 1 edge.*'c' at row 1"):
        Graph.from_tables(MANY, elsewhere, graph="molecule")
    unique = {"id": [1, 2, 3], "molecule": ["m1", "m1", "m2"]}
    with pytest.raises(
        GraphInputError, match=r"1 edge.s. join nodes of two graphs, first at row 0"
    ):
        Graph.from_tables(unique, {"source": [1], "target": [3]}, graph="molecule")
    with pytest.raises(GraphInputError, match="repeat an id of an earlier row within a graph"):
        Graph.from_tables({"id": [1, 1], "molecule": ["a", "a"]}, None, graph="molecule")
    with pytest.raises(GraphInputError, match="differs between nodes of one graph"):
        Graph.from_tables(MANY, BONDS, graph="molecule", target_column="mass", level="graph")


def test_the_join_is_the_one_of_a_dictionary():
    generator = np.random.default_rng(0)
    ids = generator.permutation(5000)[:2000] * 3 - 500
    position = {int(value): place for place, value in enumerate(ids)}
    source, target = generator.choice(ids, 9000), generator.choice(ids, 9000)
    graph = Graph.from_tables({"id": ids}, {"source": source, "target": target}, directed=True)
    expected = {(position[int(a)], position[int(b)]) for a, b in zip(source, target, strict=True)}
    assert {tuple(pair) for pair in graph.edge_index.T.tolist()} == expected
    assert graph.num_edges == len(expected)
    named = Graph.from_tables(
        {"id": [f"n{i}" for i in ids]},
        {"source": [f"n{i}" for i in source], "target": [f"n{i}" for i in target]},
        directed=True,
    )
    assert torch.equal(named.edge_index, graph.edge_index)


def test_cora_written_out_as_text_is_read_as_it_was(data_root, tmp_path):
    data = load("cora", data_root)
    words = data.x.to_dense().numpy().astype(np.int8)
    columns = {f"w{place}": column for place, column in enumerate(words.T)}
    nodes = {"id": [f"p{place}" for place in range(len(words))], **columns, "topic": data.y.numpy()}
    source, target = ([f"p{place}" for place in end] for end in data.edge_index.tolist())
    for name, table in (("nodes", nodes), ("edges", {"source": source, "target": target})):
        pa.csv.write_csv(pa.table(table), tmp_path / f"{name}.csv")
    graph = Graph.from_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", target_column="topic")
    assert not graph.directed
    assert torch.equal(graph.edge_index, data.edge_index)
    features = Preprocessing.fit(graph).transform(graph)
    assert features.x.layout == torch.sparse_csr
    varies = (words != words[0]).any(axis=0)
    assert torch.equal(features.x.to_dense(), torch.from_numpy(words[:, varies]).float())
    assert torch.equal(TargetEncoder.fit(graph).encode(graph), data.y)


def test_new_tables_are_read_as_the_first_ones_were(tmp_path):
    write(tmp_path / "n.csv", "name,code,side\na1,007,x\n2,x12,007\n3,NA,\n")
    write(tmp_path / "e.csv", "who,whom,weight,kind\na1,2,1.5,01\n2,3,2.5,b\n")
    graph = Graph.from_tables(
        tmp_path / "n.csv", tmp_path / "e.csv", target_column="side", directed=False
    )
    reading = {**graph.reading, "categories": ["code", "kind", "side"]}
    # Columns in another order, none with a usual name, and values that look like numbers.
    write(tmp_path / "n2.csv", "code,id,name,side\n007,9,5,007\nNA,8,6,\n")
    write(tmp_path / "e2.csv", "kind,weight,whom,who\n01,2.0,6,5\n")
    new = Graph.from_tables(tmp_path / "n2.csv", tmp_path / "e2.csv", **reading)
    assert new.ids.to_pylist() == [5, 6]
    assert new.node_columns["code"].to_pylist() == ["007", None]
    assert new.target.to_pydict() == {"side": ["007", None]}
    assert new.edge_index.tolist() == [[0, 1], [1, 0]]
    assert new.edge_weight.tolist() == [2.0, 2.0]
    assert new.edge_columns["kind"].to_pylist() == ["01"]
    assert not new.directed


def test_a_prediction_does_without_the_target_and_not_without_ids(tmp_path):
    atoms = {"molecule": [1, 1, 2], "id": [1, 2, 1], "z": [6, 8, 6]}
    bonds = {"molecule": [1], "source": [1], "target": [2]}
    soluble = {"molecule": [1, 2], "soluble": ["yes", "no"]}
    options = {"graph": "molecule", "target_column": "soluble", "categories": ["z"]}
    reading = Graph.from_tables(atoms, bonds, graphs=soluble, **options).reading
    for graphs in (None, {"molecule": [1, 2]}):
        new = Graph.from_tables(atoms, bonds, graphs=graphs, **reading)
        assert (new.level, new.num_rows, new.target) == ("graph", 2, None)
    with pytest.raises(
        GraphInputError, match=r"no column 'id', the id column .* Did you mean 'Id'"
    ):
        Graph.from_tables({"molecule": [1], "Id": [1], "z": [6]}, None, **reading)


def test_columns_for_splits_are_not_needed_and_no_features_of_a_prediction():
    nodes = {"id": [0, 1], "v": [1.0, 2.0], "when": [1, 2], "part": ["train", "test"]}
    edges = {"source": [0], "target": [1], "when": [3]}
    reading = Graph.from_tables(nodes, edges, time="when", split="part", directed=True).reading
    new = Graph.from_tables({**nodes, "part": ["later", "now"]}, edges, **reading)
    assert (new.time, new.split) == (None, None)
    assert new.node_columns.column_names == ["v"]
    assert new.edge_columns.column_names == ["when"]
    assert Graph.from_tables({"id": [0], "v": [1.0]}, None, **reading).num_nodes == 1


def test_new_nodes_may_be_without_edges():
    nodes = {"id": [0, 1, 2], "v": [1.0, 2.0, 4.0]}
    edges = {"source": [0, 1], "target": [1, 2], "weight": [1.0, 2.0], "kind": [3.0, 4.0]}
    graph = Graph.from_tables(nodes, edges, directed=True)
    plan = Preprocessing.fit(graph)
    empty = pa.table(edges).slice(0, 0)
    for none in (None, empty):
        new = Graph.from_tables(nodes, none, **graph.reading)
        features = plan.transform(new)
        assert features.x.shape == (3, len(plan.names)) == (3, 3)
        assert features.x[:, 1:].count_nonzero() == 0
        assert features.edge_weight.tolist() == []
    with pytest.raises(GraphInputError, match="header and no rows"):
        Graph.from_tables(nodes, empty, directed=True)


def test_times_are_ordered_in_time_or_refused(tmp_path):
    nodes = {"id": [0, 1, 2], "when": ["2024-01-31", None, "2023-12-01 10:30"]}
    edges = {"source": [0], "target": [1]}
    graph = Graph.from_tables(nodes, edges, time="when", directed=True)
    assert pa.types.is_timestamp(graph.time.type)
    assert graph.time.is_null().to_pylist() == [False, True, False]
    for times in (["1 May 2024", "2 May 2023", None], ["9", "10", "11"], [True, False, True]):
        with pytest.raises(GraphInputError, match=r"column 'when' have the type .* 2024-01-31"):
            Graph.from_tables({**nodes, "when": times}, edges, time="when", directed=True)
    write(tmp_path / "n.csv", "id,when\n0,31.01.2024\n1,01.02.2023\n2,\n")
    with pytest.raises(GraphInputError, match=r"'31\.01\.2024'"):
        Graph.from_tables(tmp_path / "n.csv", edges, time="when", directed=True)


def test_ids_above_the_signed_numbers_are_kept():
    ids = pa.array([2**64 - 1, 2**64 - 2], pa.uint64())
    graph = Graph.from_tables({"id": ids}, {"source": ids[:1], "target": ids[1:]})
    assert graph.ids.to_pylist() == [str(2**64 - 1), str(2**64 - 2)]
    assert graph.edge_index.tolist() == [[0], [1]]
    small = pa.array([1, 2], pa.uint64())
    assert pa.types.is_int64(Graph.from_tables({"id": small}, None).ids.type)


def test_a_direction_that_the_table_does_not_agree_with_is_told():
    edges = {"Source": [0], "Target": [1], "Type": ["Directed"]}
    graph = Graph.from_tables({"id": [0, 1]}, edges, directed=False)
    assert any("taken as undirected, as asked, though column 'Type'" in n for n in graph.notes)
