"""Targets as numbers and back."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from adgn.data import Graph, GraphInputError, TargetEncoder


def graph_with(target, name="y"):
    count = len(next(iter(target.values()))) if isinstance(target, dict) else len(target)
    nodes = {"id": list(range(count)), **(target if isinstance(target, dict) else {name: target})}
    names = list(target) if isinstance(target, dict) else name
    return Graph.from_tables(nodes, None, id="id", target_column=names)


def fitted(target, **options):
    graph = graph_with(target)
    encoder = TargetEncoder.fit(graph, **options)
    assert TargetEncoder.from_json(json.loads(json.dumps(encoder.to_json()))) == encoder
    return encoder, graph


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (["b", "a", None, "b"], ("a", "b")),
        ([3, 1, None, 3], (1, 3)),
        ([1.0, 0.0, float("nan"), 1.0], (0, 1)),
        ([True, False, None, True], (False, True)),
        (pa.array(["b", "a", None, "b"]).dictionary_encode(), ("a", "b")),
    ],
)
def test_classes(values, classes):
    encoder, graph = fitted(values)
    assert encoder.kind == "classification"
    assert encoder.classes == classes
    assert encoder.num_outputs == 2
    assert encoder.encode(graph).tolist() == [1, 0, -1, 1]
    assert encoder.decode(torch.tensor([1, 0])).to_pylist() == [classes[1], classes[0]]


def test_numbers_are_standardised_by_the_chosen_rows():
    values = [1.5, 3.5, 100.0, None]
    encoder, graph = fitted(values, rows=torch.tensor([0, 1]))
    assert encoder.kind == "regression"
    assert encoder.mean == (2.5,)
    assert encoder.scale == (1.0,)
    encoded = encoder.encode(graph)
    assert encoded[:3, 0].tolist() == [-1, 1, 97.5]
    assert encoded[3].isnan().all()
    assert encoder.decode(encoded)[:3, 0].tolist() == values[:3]


def test_several_numbers():
    encoder, graph = fitted({"a": [1.0, 3.0, None], "b": [10, 20, 30]})
    assert encoder.names == ("a", "b")
    assert encoder.num_outputs == 2
    assert graph.labelled.tolist() == [0, 1]
    assert encoder.encode(graph).shape == (3, 2)


def test_whole_numbers_are_classes_where_they_are_few():
    assert fitted(list(range(20)) * 3)[0].kind == "classification"
    assert fitted(list(range(21)) * 3)[0].kind == "regression"
    assert fitted([0, 1, 0, 1], kind="regression")[0].kind == "regression"
    assert fitted([0.0, 0.5, 0.5, 0.0])[0].kind == "regression"


def test_targets_that_teach_nothing():
    with pytest.raises(GraphInputError, match=r"'y' of nodes has one class only, 'a', in 3 rows"):
        fitted(["a", "a", None, "a"])
    with pytest.raises(GraphInputError, match=r"'y' of nodes is missing in all 3 rows"):
        fitted(pa.array([None] * 3, pa.string()))
    with pytest.raises(GraphInputError, match=r"'y' of nodes has one value only, 0.5"):
        fitted([0.5, 0.5])
    with pytest.raises(GraphInputError, match="has no target; name its column"):
        TargetEncoder.fit(Graph.from_arrays(np.eye(2), [[0], [1]]))
    with pytest.raises(GraphInputError, match="'y' of nodes has 30 classes in 30 labelled rows"):
        fitted([f"n{i}" for i in range(30)])


def test_a_label_that_is_there_once_is_told():
    encoder, _ = fitted(["a", "a", "lone", "b", "b"])
    (note,) = encoder.notes
    assert "1 of 3 classes are there only once ('lone'; the first is node 2)" in note


def test_targets_of_another_kind():
    with pytest.raises(GraphInputError, match=r"'y' of nodes is not numbers: it has 'a'"):
        fitted(["a", "b"], kind="regression")
    with pytest.raises(GraphInputError, match=r"'y' of nodes is infinite for node 1"):
        fitted([1.5, float("inf")])
    with pytest.raises(GraphInputError, match="classes are one column"):
        fitted({"a": [1, 2], "b": [1, 2]}, kind="classification")
    with pytest.raises(GraphInputError, match="kind='ranking'"):
        fitted([1, 2], kind="ranking")


def test_new_data():
    encoder, _ = fitted(["a", "b", "a"])
    assert encoder.encode(graph_with(pa.nulls(2))).tolist() == [-1, -1]
    assert encoder.encode(Graph.from_arrays(np.eye(2), [[0], [1]])).tolist() == [-1, -1]
    with pytest.raises(GraphInputError, match=r"1 label\(s\) that the model has never seen, .*'z'"):
        encoder.encode(graph_with(["a", "z"]))
    with pytest.raises(GraphInputError, match=r"has the target 'other'; the model predicts 'y'"):
        encoder.encode(graph_with(["a"], name="other"))
    numbers, _ = fitted([1.5, 2.5])
    assert numbers.encode(Graph.from_arrays(np.eye(2), [[0], [1]])).isnan().all()
    whole, _ = fitted([1, 2, 1])
    assert whole.encode(graph_with([2.0, None])).tolist() == [1, -1]
    with pytest.raises(GraphInputError, match="never seen"):
        whole.encode(graph_with(["a", "1"]))
    truth, _ = fitted([True, False])
    assert truth.encode(graph_with([1, 0, None])).tolist() == [1, 0, -1]


def test_rows_with_some_of_the_targets_are_counted():
    y = pa.table({"a": [1.0, 2.0, 3.0, None], "b": [5.0, None, 7.0, None]})
    graph = Graph.from_arrays([[0.0]] * 4, [[0], [1]], y=y)
    (note,) = TargetEncoder.fit(graph).notes
    assert note.startswith("target: 1 node(s) of x have a value in some of the columns 'a', 'b'")
