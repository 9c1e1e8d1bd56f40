"""Many graphs in a folder."""

import networkx
import pytest

from adgn.data import Graph, GraphInputError


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def folder_of_pairs(folder, form):
    for name, ids in (("a", "12"), ("b", "13")):
        rows = "".join(f"{i},{i}.5,{kind}\n" for i, kind in zip(ids, "xy", strict=True))
        write(folder / form.format(name, "nodes"), f"id,mass,kind\n{rows}")
        write(folder / form.format(name, "edges"), f"source,target\n{ids[0]},{ids[1]}\n")
    return folder


@pytest.mark.parametrize("form", ["{}_{}.csv", "{}.{}.csv", "{}/{}.csv"])
def test_pairs_of_tables(tmp_path, form):
    folder_of_pairs(tmp_path, form)
    write(tmp_path / "targets.csv", "name,toxic\nb,no\na,yes\n")
    write(tmp_path / "notes.md", "about these files")
    graph = Graph.from_folder(tmp_path, target_column="toxic", directed=False)
    assert graph.graph_ids.to_pylist() == ["a", "b"]
    assert graph.ids.to_pylist() == [1, 2, 1, 3]
    assert graph.graph_of_node.tolist() == [0, 0, 1, 1]
    assert graph.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert graph.target.to_pydict() == {"toxic": ["yes", "no"]}
    assert graph.level == "graph"
    assert graph.node_columns.to_pydict() == {
        "mass": [1.5, 2.5, 1.5, 3.5],
        "kind": ["x", "y", "x", "y"],
    }
    assert any("1 file(s) not read: notes.md" in note for note in graph.notes)


def test_graphml_files(tmp_path):
    for name, length in (("a", 2), ("b", 3), ("lone", 1)):
        graph = networkx.path_graph(length)
        networkx.set_node_attributes(graph, {n: {"mass": n + 0.5} for n in graph})
        networkx.write_graphml(graph, tmp_path / f"{name}.graphml")
    write(tmp_path / "targets.csv", "graph,size\na,2\nb,3\n")
    graph = Graph.from_folder(tmp_path, target_column="size")
    assert graph.graph_ids.to_pylist() == ["a", "b", "lone"]
    assert graph.target.to_pydict() == {"size": [2, 3, None]}
    assert not graph.directed
    assert graph.num_edges == 2 + 4
    masses = graph.node_columns.column("mass").to_pylist()
    assert masses == [0.5, 1.5, 0.5, 1.5, 2.5, 0.5]


def test_one_pair_is_one_graph(tmp_path):
    write(tmp_path / "nodes.csv", "id,v\n1,2\n2,3\n")
    write(tmp_path / "edges.csv", "source,target\n1,2\n")
    graph = Graph.from_folder(tmp_path)
    assert graph.num_nodes == 2
    assert graph.graph_ids is None


def test_errors_name_the_file_of_the_graph(tmp_path):
    folder_of_pairs(tmp_path, "{}_{}.csv")
    write(tmp_path / "b_edges.csv", "source,target\n1,3\n1,9\n")
    with pytest.raises(GraphInputError, match=r"9 at line 3 of b_edges.csv"):
        Graph.from_folder(tmp_path)


def test_folders_that_are_wrong(tmp_path):
    with pytest.raises(GraphInputError, match="is not a folder"):
        Graph.from_folder(tmp_path / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(GraphInputError, match="empty has no graphs"):
        Graph.from_folder(empty)
    write(tmp_path / "half" / "a_nodes.csv", "id\n1\n")
    with pytest.raises(GraphInputError, match=r"'a' has a_nodes.csv and no table of edges"):
        Graph.from_folder(tmp_path / "half")
    other = folder_of_pairs(tmp_path / "other", "{}_{}.csv")
    write(other / "b_nodes.csv", "id,weight\n1,2\n3,4\n")
    with pytest.raises(GraphInputError, match=r"b_nodes.csv and a_nodes.csv have different col"):
        Graph.from_folder(other)
    both = folder_of_pairs(tmp_path / "both", "{}_{}.csv")
    networkx.write_graphml(networkx.path_graph(2), both / "c.graphml")
    with pytest.raises(GraphInputError, match="GraphML files and tables; keep one kind"):
        Graph.from_folder(both)
    two = folder_of_pairs(tmp_path / "two", "{}_{}.csv")
    write(two / "targets.csv", "graph,y\na,1\n")
    write(two / "labels.csv", "graph,y\na,1\n")
    with pytest.raises(GraphInputError, match="several tables of targets"):
        Graph.from_folder(two, target_column="y")


def test_new_graphs_need_no_targets(tmp_path):
    folder_of_pairs(tmp_path / "old", "{}_{}.csv")
    write(tmp_path / "old" / "targets.csv", "name,toxic\nb,no\na,yes\n")
    reading = Graph.from_folder(tmp_path / "old", target_column="toxic", directed=False).reading
    new = Graph.from_folder(folder_of_pairs(tmp_path / "new", "{}/{}.csv"), **reading)
    assert (new.level, new.num_rows, new.target, new.directed) == ("graph", 2, None, False)
