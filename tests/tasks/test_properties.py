import math
import warnings

import pytest
import torch

from adgn.data import TARGETS
from adgn.training import (
    TASKS,
    LearnedNothingWarning,
    TrainConfig,
    prepare,
    resolve_config,
    train,
)

SMALL = {"min_nodes": 6, "train": [2, 6], "val": [1, 4], "test": [2, 3]}


@pytest.mark.parametrize("target", list(TARGETS))
def test_property_tasks(target, tmp_path):
    config = TrainConfig(task={"name": target, "root": str(tmp_path), **SMALL})
    prepared = prepare(config)
    assert prepared.data.level == TARGETS[target].level
    (batch,) = prepared.data.sources["test"].batches(0)
    rows = batch.num_graphs if prepared.data.level == "graph" else batch.x.size(0)
    assert batch.y.shape == (rows, 1)
    # The constant predictor, by the trainer's own scores.
    mean = {"node": lambda b: (b.weight @ b.y).item(), "graph": lambda b: b.y.mean().item()}
    (everything,) = prepared.data.sources["train"].batches(0)
    constant = mean[prepared.data.level](everything)
    metrics = prepared.trainer.objective.metrics()
    metrics.update(torch.full_like(batch.y, constant), batch)
    for name, score in prepared.data.constant.items():
        assert metrics.compute()[name] == pytest.approx(score, abs=1e-5)


def test_published_values_only_for_the_papers_graphs():
    default = TrainConfig("diameter")
    assert TASKS["diameter"].published(default).mean == -0.5188
    reduced = resolve_config(default, {"task": {"train": [1, 512]}})
    assert TASKS["diameter"].published(reduced) is None


@pytest.mark.long
def test_adgn_beats_gcn_on_a_reduced_sssp(tmp_path):
    """Distances of up to a dozen hops: GCN stays near the constant, A-DGN does not."""
    scores = {}
    for model in ("adgn", "gcn"):
        with warnings.catch_warnings():
            if model == "gcn":
                warnings.simplefilter("ignore", LearnedNothingWarning)
            result = train(
                "sssp",
                task={"root": str(tmp_path), "train": [5, 60], "val": [5, 15], "test": [5, 30]},
                model={"name": model, "hidden_channels": 20, "num_layers": 10},
                optimizer={"lr": 0.01},
                loop={"max_epochs": 30, "batch_size": 30},
            )
        scores[model] = result.score
    constant = result.constant["log10_mse"]
    assert scores["adgn"] < scores["gcn"] - 0.15
    assert scores["adgn"] < constant - 0.15
    assert math.isfinite(scores["gcn"])
