import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import adgn
from adgn._util.environment import NotEnoughMemoryError
from adgn.nn import IntegerEmbedding, available_models
from adgn.selection import select
from adgn.training import TASKS, TrainConfig, resolve_config, resume
from adgn.training.models import (
    build_network,
    check_model_options,
    check_run_memory,
    estimate_memory,
    parameter_bytes,
)
from adgn.training.tasks import TaskSize, task_entry


@pytest.mark.parametrize("name", available_models())
def test_every_model_is_built_from_a_configuration(name):
    config = TrainConfig("diameter", model={"name": name, "num_layers": 2, "hidden_channels": 4})
    network = build_network(config.model, TaskSize(0, 3, 3, 2, 1, "graph"))
    ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
    out = network(torch.randn(3, 2), ring, batch=torch.zeros(3, dtype=torch.long))
    assert out.shape == (1, 1)


def test_integers_get_an_embedding():
    config = TrainConfig("tree-neighbors-match").model
    network = build_network(config, TaskSize(0, 3, 3, 2, 9, embeddings=(9, 9)))
    assert isinstance(network.encoder, IntegerEmbedding)
    assert network.readout.bias is None
    assert network.parameter_counts()["encoder"] == 2 * 9 * config.hidden_channels


@pytest.mark.parametrize(("encoder", "embeddings"), [("embedding", None), ("linear", (3,))])
def test_encoder_must_fit_the_features(encoder, embeddings):
    config = TrainConfig("sssp", model={"encoder": encoder}).model
    with pytest.raises(ValueError, match="does not fit the task"):
        build_network(config, TaskSize(0, 3, 3, 1, 1, embeddings=embeddings))


def test_options_have_their_defaults_filled_in():
    options = check_model_options("adgn", {"epsilon": 0.5, "edge_dim": "none"})
    assert (options["epsilon"], options["gamma"], options["edge_dim"]) == (0.5, 0.1, None)
    assert (options["encoder"], options["dropout"]) == ("linear", 0.0)
    assert check_model_options("adgn", {"encoder": "none"})["encoder"] == "none"  # a name here


SMALL = {"name": "graph-transfer", "distance": 2, "train": 4, "val": 2, "test": 2}


def transfer(distance, graphs, **model):
    return {
        "task": {**SMALL, "distance": distance, "train": graphs},
        "model": model,
        "loop": {"max_epochs": 1, "batch_size": graphs},
        "optimizer": {"lr": 1e-6},
    }


@pytest.mark.long
def test_the_estimate_is_within_a_factor_of_two_of_what_is_measured(tmp_path):
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the system does not tell the peak of a process's memory")
    configs = [
        # Weights, states of a fused integration, and states of plain layers. With dropout all
        # nodes are computed, and not only those that the one which is read depends on: the
        # estimate is for all.
        transfer(2, 4, hidden_channels=250, num_layers=20, dropout=0.1),
        transfer(1000, 10, hidden_channels=64, num_layers=40, dropout=0.1),
        transfer(1000, 10, name="gin", hidden_channels=64, num_layers=15, dropout=0.1),
    ]
    program = [
        sys.executable,
        Path(__file__).parents[1] / "helpers" / "measured_memory.py",
        tmp_path,
    ]
    done = subprocess.run(
        [*program, *map(json.dumps, configs)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(configs)
    for line in lines:
        estimate, peak = map(float, line.split())
        assert peak > 1e8
        assert 0.5 < estimate / peak < 2


@pytest.mark.parametrize("name", available_models())
def test_the_parameters_of_every_model_are_counted_without_making_it(name):
    size = task_entry("sssp").size(TrainConfig("sssp"))

    def build(layers):
        config = TrainConfig("sssp", model={"name": name, "num_layers": layers})
        return build_network(config.model, size)

    before = torch.get_rng_state()
    counted = parameter_bytes(build, 7)
    assert torch.equal(torch.get_rng_state(), before)
    true = 4 * sum(p.numel() for p in build(7).parameters())
    assert true <= counted <= true + 7 * 20_000


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_has_an_estimate_and_fits_with_its_defaults(task):
    need = estimate_memory(TrainConfig(task))
    assert min(need.weights, need.states, need.data) > 0
    assert need.total < 4e9


def test_pairs_that_are_no_edges_count():
    def states(task, model):
        return estimate_memory(resolve_config(task, {"model": {"name": model}})).states

    # 8.4 million pairs of Squirrel are two hops apart: at least two indices and two values each.
    assert states("squirrel", "h2gcn") > 16 * 8.4e6
    # Distances, their squares and the kernel of 5201 nodes, in double precision.
    assert states("squirrel", "geomgcn") > 3 * 8 * 5201**2
    # Of many graphs each has its own pairs.
    assert states("sssp", "geomgcn") < 1e9


def test_dropped_features_are_copies():
    def states(**model):
        return estimate_memory(resolve_config("chameleon", {"model": model})).states

    before = states(name="gcn", dropout=0.5)
    assert states(name="gcn", dropout=0.5, first_dropout="features") > before
    assert states(name="gcn", dropout=0.0, first_dropout="features") == states(name="gcn")


@pytest.mark.parametrize(
    ("task", "changes", "most"),
    [
        ("sssp", {"model": {"num_layers": 100_000_000}}, "states of a batch"),
        ("texas", {"model": {"num_layers": 100_000_000, "weight_sharing": False}}, "weights"),
        ("texas", {"model": {"hidden_channels": 100_000_000}}, "weights"),
        ("texas", {"model": {"hidden_channels": 10**18}}, "weights"),
        ("graph-transfer", {"task": {"distance": 10**9}}, "states of a batch"),
        ("graph-transfer", {"task": {"distance": 3, "train": 10**11}}, "data"),
        ("tree-neighbors-match", {"task": {"radius": 10**9}}, "weights"),
        ("sssp", {"task": {"min_nodes": 10**7}}, "data"),
    ],
)
def test_what_cannot_fit_is_refused_before_anything_is_written(tmp_path, task, changes, most):
    numbers = rf"{task} with adgn.*needs about .* GB of memory, and .* GB are free"
    with pytest.raises(NotEnoughMemoryError, match=numbers) as error:
        adgn.train(task, run_dir=tmp_path / "run", **changes)
    assert f"most of it for {most}" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_no_longer_fits_is_not_resumed(tmp_path, monkeypatch):
    adgn.train(TrainConfig(task=SMALL, loop={"max_epochs": 1}), run_dir=tmp_path / "run")
    monkeypatch.setattr("adgn._util.environment.available_bytes", lambda: 1e4)
    with pytest.raises(NotEnoughMemoryError):
        resume(tmp_path / "run")
    monkeypatch.setenv("ADGN_MEMORY_CHECK", "off")
    assert resume(tmp_path / "run").epochs == 1


def test_a_study_is_refused_by_its_largest_configuration(tmp_path, monkeypatch):
    space = {"model.num_layers": [2, 100_000_000], "model.act": ["tanh", "relu"]}
    with pytest.raises(NotEnoughMemoryError, match="num_layers=100000000"):
        select("graph-transfer", space=space, folder=tmp_path / "study")
    assert list(tmp_path.iterdir()) == []


def test_runs_at_a_time_add_up(monkeypatch):
    config = TrainConfig("texas")
    need = estimate_memory(config).total
    monkeypatch.setattr("adgn._util.environment.available_bytes", lambda: 3 * need)
    check_run_memory(config, 2)
    with pytest.raises(NotEnoughMemoryError, match="4 times texas"):
        check_run_memory(config, 4)
