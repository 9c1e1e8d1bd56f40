"""Graphs of NetworkX and igraph, and GraphML files."""

import networkx
import pytest

from adgn._util import environment
from adgn.data import Graph, GraphInputError


def club(kind=networkx.Graph):
    graph = kind()
    graph.add_node("ann", age=31, club="red")
    graph.add_node("bob", age=45)
    graph.add_node("cy", club="blue", age=2)
    graph.add_edge("ann", "bob", weight=2.0, since=1999)
    graph.add_edge("bob", "cy", weight=1.0)
    return graph


def check_club(graph, directed):
    assert graph.ids.to_pylist() == ["ann", "bob", "cy"]
    assert graph.directed is directed
    assert graph.node_columns.to_pydict() == {"age": [31, 45, 2]}
    assert graph.target.to_pydict() == {"club": ["red", None, "blue"]}
    assert graph.edge_columns.to_pydict() == {"since": [1999, None]}
    found = dict(
        zip(map(tuple, graph.edge_index.T.tolist()), graph.edge_weight.tolist(), strict=True)
    )
    once = {(0, 1): 2.0, (1, 2): 1.0}
    assert found == once if directed else found == once | {(1, 0): 2.0, (2, 1): 1.0}


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
def test_networkx(kind):
    check_club(Graph.from_networkx(club(kind), target_column="club"), kind is networkx.DiGraph)


def test_networkx_with_parallel_edges_and_other_ids():
    graph = networkx.MultiDiGraph()
    graph.add_edges_from([((0, 1), (1, 1)), ((0, 1), (1, 1))])
    made = Graph.from_networkx(graph)
    assert made.ids.to_pylist() == ["(0, 1)", "(1, 1)"]
    assert made.num_edges == 1
    assert any("1 edge is listed more than once" in note for note in made.notes)


def test_attributes_with_names_of_ids():
    graph = networkx.DiGraph()
    graph.add_node(7, id=70, source=1)
    graph.add_node(8, id=80, source=2)
    graph.add_edge(7, 8, source="x", target="y")
    made = Graph.from_networkx(graph)
    assert made.ids.to_pylist() == [7, 8]
    assert made.node_columns.to_pydict() == {"id": [70, 80], "source": [1, 2]}
    assert made.edge_index.tolist() == [[0], [1]]
    assert made.edge_columns.to_pydict() == {"source": ["x"], "target": ["y"]}


def test_networkx_that_is_wrong():
    with pytest.raises(GraphInputError, match="give a graph of NetworkX"):
        Graph.from_networkx([1, 2])
    mixed = networkx.Graph()
    mixed.add_node(1, a=1)
    mixed.add_node(2, a="x")
    with pytest.raises(GraphInputError, match="node attribute 'a' cannot be a column"):
        Graph.from_networkx(mixed)
    with pytest.raises(GraphInputError, match="id='age' is for tables"):
        Graph.from_networkx(club(), id="age")
    with pytest.raises(TypeError, match=r"those of Graph.from_tables"):
        Graph.from_networkx(club(), tagret="club")
    with pytest.raises(GraphInputError, match=r"has no nodes|no rows"):
        Graph.from_networkx(networkx.Graph())


@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
def test_graphml(tmp_path, kind):
    path = tmp_path / "club.graphml"
    networkx.write_graphml(club(kind), path)
    check_club(Graph.from_graphml(path, target_column="club"), kind is networkx.DiGraph)


def test_graphml_that_is_wrong(tmp_path, monkeypatch):
    path = tmp_path / "club.graphml"
    with pytest.raises(GraphInputError, match="there is no such file"):
        Graph.from_graphml(path)
    path.write_text("")
    with pytest.raises(GraphInputError, match="is empty"):
        Graph.from_graphml(path)
    for text in ("<graphml><graph>", "id,age\n1,2\n", "<html></html>"):
        path.write_text(text)
        with pytest.raises(GraphInputError, match=r"club.graphml cannot be read as GraphML"):
            Graph.from_graphml(path)
    networkx.write_graphml(club(), path)
    monkeypatch.setattr(environment, "available_bytes", lambda: 100.0)
    with pytest.raises(environment.NotEnoughMemoryError, match=r"reading club.graphml"):
        Graph.from_graphml(path)


@pytest.mark.parametrize("directed", [False, True])
def test_igraph(directed):
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph(3, [(0, 1), (1, 2)], directed=directed)
    graph.vs["name"] = ["ann", "bob", "cy"]
    graph.vs["age"] = [31, 45, 2]
    graph.vs["club"] = ["red", None, "blue"]
    graph.es["weight"] = [2.0, 1.0]
    graph.es["since"] = [1999, None]
    check_club(Graph.from_igraph(graph, target_column="club"), directed)


def test_igraph_without_names():
    igraph = pytest.importorskip("igraph")
    assert Graph.from_igraph(igraph.Graph.Ring(4)).ids.to_pylist() == [0, 1, 2, 3]


class Attributes(dict):
    """What is used of igraph's sequences of vertices and edges."""

    attributes = dict.keys


class LikeIgraph:
    """What is used of igraph's graphs, for where it is not installed."""

    def __init__(self, directed):
        self.vs = Attributes(name=["ann", "bob", "cy"], age=[31, 45, 2], club=["red", None, "blue"])
        self.es = Attributes(weight=[2.0, 1.0], since=[1999, None])
        self.directed = directed

    def is_directed(self):
        return self.directed

    def vcount(self):
        return 3

    def get_edgelist(self):
        return [(0, 1), (1, 2)]


@pytest.mark.parametrize("directed", [False, True])
def test_the_used_part_of_igraph(directed):
    check_club(Graph.from_igraph(LikeIgraph(directed), target_column="club"), directed)


def test_igraph_that_is_wrong():
    with pytest.raises(GraphInputError, match="give a graph of igraph"):
        Graph.from_igraph(networkx.Graph())


def test_a_new_graphml_file_needs_no_target_and_says_where_it_differs(tmp_path):
    club = networkx.karate_club_graph()
    networkx.write_graphml(club, tmp_path / "club.graphml")
    reading = Graph.from_graphml(tmp_path / "club.graphml", target_column="club").reading
    new = networkx.DiGraph([(0, 1, {"weight": 2.0})])
    networkx.write_graphml(new, tmp_path / "new.graphml")
    graph = Graph.from_graphml(tmp_path / "new.graphml", **reading)
    assert graph.target is None
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert any("though the graph is directed" in note for note in graph.notes)
    assert not any("though" in n for n in Graph.from_graphml(tmp_path / "club.graphml").notes)


def test_numbers_that_are_too_large_for_ids_become_text():
    graph = Graph.from_networkx(networkx.path_graph([2**70, 2**71, 3]))
    assert graph.ids.to_pylist() == [str(2**70), str(2**71), "3"]
    assert graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 2, 0, 1]]
    with pytest.raises(GraphInputError, match="too large"):
        Graph.from_tables({"id": [2**70]}, None)
