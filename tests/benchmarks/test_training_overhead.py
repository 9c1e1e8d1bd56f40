import importlib.util
from pathlib import Path

import pytest
import torch

from adgn.training import TrainConfig

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "training_overhead.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("training_overhead", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    task = {"name": "sssp", "root": str(tmp_path_factory.mktemp("data")), "min_nodes": 5}
    return TrainConfig(
        task={**task, "train": (1, 8), "val": (1, 4), "test": (1, 4)},
        model={"hidden_channels": 4, "num_layers": 2},
        loop={"batch_size": 4},
    )


def test_the_command_has_all_arguments_but_no_place_of_this_machine(script):
    arguments = script.parsed(["--data", "/some/where", "--rounds", "25", "--out", "/else/x.json"])
    assert script.command(arguments) == (
        "python benchmarks/training_overhead.py --data FOLDER --threads 1 --rounds 25"
    )


@pytest.mark.parametrize("words", [["--rounds", "1"], ["--threads", "0"]])
def test_arguments_that_say_nothing_are_refused(script, words, capsys):
    with pytest.raises(SystemExit):
        script.parsed(["--data", "x", *words])
    assert " ".join(words) in capsys.readouterr().err


def test_rounds_take_turns_in_who_comes_first(script):
    calls = []
    pairs = script.take_pairs(lambda n: calls.append("a"), lambda n: calls.append("b"), 1, 3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert len(pairs) == 3


def test_the_overhead_is_the_median_of_the_pairs(script):
    taken = script.Taken
    pairs = [(taken(1, 1.0), taken(1, 1.1)), (taken(1, 4.0), taken(3, 4.0))]
    pairs.append((taken(1, 2.0), taken(2, 2.4)))
    found = script.compared(pairs, epochs=2)
    assert found["overhead"] == pytest.approx(0.1)
    assert found["overhead_quartiles"] == pytest.approx([0.05, 0.15])
    assert found["overhead_of_medians"] == pytest.approx(0.2)
    assert found["overhead_of_fastest"] == pytest.approx(0.1)
    assert found["overhead_wall"] == pytest.approx(1.0)
    assert found["bare_seconds"] == {"median": 1.0, "fastest": 0.5}
    assert found["loop_seconds"] == {"median": 1.2, "fastest": 0.55}


def test_measures_training_with_and_without_validation(script, config):
    found = script.measure(config, epochs=1, rounds=2)
    for part in ("training", "training_and_validation"):
        for way in ("bare_seconds", "loop_seconds"):
            assert 0 < found[part][way]["fastest"] <= found[part][way]["median"]
        low, high = found[part]["overhead_quartiles"]
        assert -1 < low <= found[part]["overhead"] <= high


def test_loading_and_epoch_are_in_one_unit(script, config, monkeypatch):
    threads = []

    def pairs(loading, epoch, epochs, rounds):
        threads.append(torch.get_num_threads())
        loading(epochs), epoch(epochs)
        one, other = (script.Taken(wall=2.0, cpu=1.0), script.Taken(wall=20.0, cpu=40.0))
        return [(one, other)] * rounds

    monkeypatch.setattr(script, "take_pairs", pairs)
    before = torch.get_num_threads()
    alone, together = (script.measure_loading(config, count, rounds=2) for count in (1, 2))
    assert threads == [1, 2]
    assert torch.get_num_threads() == before
    assert (alone["seconds_are"], together["seconds_are"]) == ("cpu", "wall")
    assert (alone["loading_seconds"], alone["epoch_seconds"], alone["share"]) == (1.0, 40.0, 0.025)
    assert (together["loading_seconds"], together["share"]) == (2.0, 0.1)
