import subprocess
import sys

import pytest
import torch

from adgn.training import (
    TASKS,
    ConfigError,
    prepare,
    register_task,
    resolve_config,
    shared_data,
    train,
    unregister_task,
)
from adgn.training.tasks import with_extra_scores


def test_wrong_task_settings():
    with pytest.raises(ConfigError, match=r"radius.*greater than or equal to 2"):
        resolve_config({"task": {"name": "tree-neighbors-match", "radius": 1}})
    with pytest.raises(ConfigError, match=r"Did you mean 'distance'"):
        resolve_config({"task": {"name": "graph-transfer", "distanc": 1}})
    with pytest.raises(ConfigError, match=r"topology.*'line'"):
        resolve_config({"task": {"name": "graph-transfer", "topology": "lin"}})


def test_every_task_says_what_it_is():
    for entry in TASKS.values():
        assert entry.summary
        assert entry.protocol
        assert entry.objective in ("regression", "classification")


def test_a_task_is_found_without_importing_what_registers_it():
    program = (
        "import sys\n"
        "from adgn.training.tasks import task_entry\n"
        "assert not any(name.startswith('adgn.tasks') for name in sys.modules)\n"
        "assert task_entry('sssp').family == 'property'\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_tasks_are_listed_in_one_order_whoever_imports_first():
    program = "import adgn.tasks.transfer; from adgn.training import TASKS; print(*TASKS)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == list(TASKS)
    assert list(TASKS)[-2:] == ["tree-neighbors-match", "graph-transfer"]


def test_a_name_is_registered_once_and_can_be_freed():
    with pytest.raises(ValueError, match="a task named 'sssp' is registered already"):
        register_task("sssp", objective="regression")(lambda *arguments: None)
    for _ in range(2):
        register_task("fleeting", objective="regression")(lambda *arguments: None)
        assert resolve_config("fleeting").task.name == "fleeting"
        unregister_task("fleeting")
    with pytest.raises(ConfigError, match="task='fleeting' is not known"):
        resolve_config("fleeting")


def test_an_objective_that_is_not_there_is_named():
    register_task("wrong", objective="regresion")(lambda *arguments: None)
    try:
        with pytest.raises(ValueError, match=r"objective='regresion'.*Did you mean 'regression'"):
            prepare(resolve_config("wrong"))
    finally:
        unregister_task("wrong")


def test_extra_scores_come_from_the_configuration_and_the_others():
    settings = {"model": {"name": "gcn", "hidden_channels": 16, "num_layers": 2}}
    config = resolve_config("tree-neighbors-match", settings)
    scores = with_extra_scores(config, {"accuracy": 0.5})
    assert scores == {"accuracy": 0.5, "normalised_accuracy": 100 * 0.5 / (16 * 2)}
    shared = resolve_config("tree-neighbors-match", {"model": {"hidden_channels": 16}})
    assert with_extra_scores(shared, {"accuracy": 0.5})["normalised_accuracy"] == 100 * 0.5 / 16
    assert with_extra_scores(resolve_config("texas"), {"accuracy": 0.5}) == {"accuracy": 0.5}


TINY = {
    "task": {"name": "graph-transfer", "distance": 2, "train": 12, "val": 6, "test": 6},
    "loop": {"max_epochs": 2, "batch_size": 5},
}


def test_runs_share_graphs_and_not_their_order():
    with shared_data():
        first = prepare(resolve_config(TINY, {"seed": 1}))
        second = prepare(resolve_config(TINY, {"seed": 2}))
    assert first.data.train.graphs is second.data.train.graphs
    assert first.data.sources["val"] is second.data.sources["val"]
    orders = [[b.y for b in run.data.train.batches(0)] for run in (first, second)]
    assert not torch.equal(torch.cat(orders[0]), torch.cat(orders[1]))


def test_sharing_changes_no_score():
    alone = [train(TINY, seed=seed).scores for seed in (1, 2)]
    with shared_data():
        shared = [train(TINY, seed=seed).scores for seed in (1, 2)]
    assert shared == alone


def test_other_settings_are_other_data():
    with shared_data():
        first = prepare(resolve_config(TINY))
        other = prepare(resolve_config(TINY, {"task": {"distance": 3}}))
        again = prepare(resolve_config(TINY))
    assert first.data.sources["val"] is not other.data.sources["val"]
    assert first.data.sources["val"] is again.data.sources["val"]
    assert prepare(resolve_config(TINY)).data.sources["val"] is not first.data.sources["val"]


def test_splits_share_one_graph(data_root):
    texas = resolve_config("texas", {"task": {"root": str(data_root)}})
    with shared_data():
        runs = [
            prepare(texas.model_copy(update={"task": replace_split(texas.task, split)}))
            for split in (0, 1)
        ]
    first, second = (next(run.data.train.batches(0)) for run in runs)
    assert first.x is second.x
    assert first.graph is second.graph
    assert not torch.equal(first.rows, second.rows)


def replace_split(task, split):
    return task.model_copy(update={"split": split})


def test_the_test_split_can_be_left_alone():
    result = train(TINY, evaluate_test=False)
    assert set(result.scores) == {"train", "val"}
    assert result.metric == "log10_mse"
    assert result.to_dict()["scores"] == result.scores
