"""Transforms in the configuration of node tasks: written down, applied, told."""

import pytest
import torch

from adgn.analysis import sensitivity
from adgn.analysis.states import in_double
from adgn.analysis.subject import load_run
from adgn.data import load
from adgn.graph import graph_operator
from adgn.selection import SpaceError
from adgn.selection.spaces import check_space
from adgn.training import ConfigError, TrainConfig, evaluate, prepare, resolve_config, train
from adgn.training.config import to_toml, tomllib
from adgn.transforms import DIGL, EdgeGraph, LargestComponent

QUICK = {"loop": {"max_epochs": 2}, "model": {"name": "gcn", "num_layers": 2}}


def task(root, transform, name="texas"):
    return {"name": name, "root": str(root), "transform": transform}


@pytest.mark.parametrize(
    "transform", ["none", "sdrf:iterations=3", ["reverse", {"name": "digl", "threshold": 0.1}]]
)
def test_a_configuration_reads_back_as_it_was_written(transform):
    config = TrainConfig(task={"name": "texas", "transform": transform})
    assert resolve_config(tomllib.loads(to_toml(config))) == config


def test_all_settings_are_written_down():
    config = TrainConfig(task={"name": "texas", "transform": "sdrf"})
    (settings,) = config.task.transform
    assert settings["name"] == "sdrf"
    assert settings["iterations"] == 100
    assert settings["seed"] == 0
    assert TrainConfig("texas").task.transform == []


def test_a_wrong_name_is_told_before_any_work():
    with pytest.raises(ConfigError, match=r"task\.transform: .*Did you mean 'sdrf'"):
        resolve_config({"task": {"name": "texas", "transform": "sdfr"}})
    with pytest.raises(ConfigError, match="unknown key 'transform'"):
        resolve_config({"task": {"name": "sssp", "transform": "sdrf"}})


def test_weights_of_digl_are_the_operator_of_gcn(data_root):
    graph = load("texas", data_root)
    expected = DIGL(k=8)(EdgeGraph(graph.edge_index, graph.num_nodes))
    matrix = torch.zeros(183, 183).index_put(
        tuple(expected.edge_index.flip(0)), expected.edge_weight
    )

    def operator_of(transform):
        batch = next(
            prepare(TrainConfig(task(data_root, transform), **QUICK)).data.train.batches(0)
        )
        return graph_operator(
            batch.graph, batch.edge_weight, num_nodes=183, normalization="gcn"
        ).to_dense()

    assert torch.equal(operator_of("digl:k=8"), matrix)
    torch.testing.assert_close(matrix.sum(1), torch.ones(183))  # what each node hears
    again = operator_of("digl:k=8,normalize=true")
    edges = (expected.edge_index, expected.edge_weight)
    twice = graph_operator(*edges, num_nodes=183, normalization="gcn").to_dense()
    assert torch.equal(again, twice)
    assert not torch.equal(again, matrix)


def test_a_run_with_a_transform_says_what_it_did_and_is_evaluated_again(data_root, tmp_path):
    settings = {**QUICK, "task": task(data_root, "undirected | sdrf:iterations=2")}
    result = train(settings, run_dir=tmp_path / "run")
    assert result.transforms[0].startswith("2 edges added, 0 removed; lowest curvature")
    assert result.to_dict()["transforms"] == list(result.transforms)
    assert result.published is None  # another graph than the paper's
    assert evaluate(tmp_path / "run") == result.scores


def test_labels_and_splits_follow_the_nodes_of_a_component(data_root):
    transform = {"name": "largest_component", "kind": "released"}
    data = prepare(TrainConfig(task(data_root, transform), **QUICK)).data
    whole = load("texas", data_root)
    kept = LargestComponent(kind="released")(EdgeGraph(whole.edge_index, 183)).kept
    for split, source in data.sources.items():
        batch = next(source.batches(0))
        assert batch.x.size(0) == 135
        rows = batch.node_id[batch.rows]
        mask = whole[f"{split}_mask"][:, 0]
        assert rows.tolist() == [node for node in kept.tolist() if mask[node]]
        assert whole.y[rows].equal(batch.y)


def test_fully_adjacent_is_the_readout_of_the_network(data_root):
    with_fa = prepare(TrainConfig(task(data_root, "fa"), **QUICK))
    by_option = prepare(
        TrainConfig(
            task(data_root, "none"),
            loop={"max_epochs": 2},
            model={**QUICK["model"], "fully_adjacent": True},
        )
    )
    batch = next(with_fa.data.train.batches(0))
    assert with_fa.model.fully_adjacent
    outputs = [p.model.eval()(batch.x, batch.graph) for p in (with_fa, by_option)]
    assert torch.equal(*outputs)


def test_a_space_may_choose_a_transform_that_keeps_the_nodes():
    settings = TrainConfig("texas").model_dump(mode="json")
    space = {"task.transform": ["none", "fa", "digl:k=8", "undirected | sdrf:iterations=5"]}
    assert check_space(space, settings) == space
    for wrong, message in (
        ("largest_component", "leaves nodes out, which would change the problem"),
        ("sdfr", "Did you mean 'sdrf'"),
    ):
        with pytest.raises(SpaceError, match=message):
            check_space({"task.transform": ["none", wrong]}, settings)
    with pytest.raises(SpaceError, match=r"task\.split cannot be chosen from"):
        check_space({"task.split": [0, 1]}, settings)


def test_a_run_with_weights_of_a_transform_is_analysed_with_them(data_root, tmp_path):
    settings = {**QUICK, "task": task(data_root, "digl:k=6")}
    train(settings, run_dir=tmp_path / "run")
    subject = load_run(tmp_path / "run")
    propagation, first, graph, weight = in_double(
        subject.model, subject.x, subject.edge_index, subject.edge_weight
    )
    expected = subject.model.eval().states(subject.x, subject.edge_index).double()
    torch.testing.assert_close(propagation(first, graph, weight), expected, rtol=1e-4, atol=1e-4)
    graph = (subject.edge_index, 0)
    assert sensitivity(subject.model, subject.x, *graph, probes=1).norms.numel() == 183
