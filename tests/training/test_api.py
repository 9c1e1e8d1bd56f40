"""Runs from beginning to end: the same bytes however they are interrupted, and clear refusals."""

import errno
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from adgn.training import (
    Callback,
    ConfigError,
    DamagedRunError,
    DivergedError,
    Interrupted,
    RunDirectory,
    RunError,
    TrainConfig,
    evaluate,
    open_run,
    predict,
    resume,
    to_toml,
    train,
)
from adgn.training.checkpoint import load_weights, save_weights
from tests import warm
from tests.helpers.callbacks import StopAfter

HERE = Path(__file__).parent
FILES = ("config.toml", "metrics.jsonl", "best.safetensors")


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def test_a_run_leaves_everything_behind(tiny, tmp_path):
    result = train(tiny, run_dir=tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    assert directory.config() == result.config
    assert [line["epoch"] for line in directory.history()] == [1, 2, 3, 4]
    written = directory.result()
    assert written["scores"]["test"]["mse"] == result.scores["test"]["mse"]
    assert written["constant_predictor"]["log10_mse"] == result.constant["log10_mse"]
    assert written["best_epoch"] == result.best_epoch
    assert written["environment"]["torch"] == torch.__version__
    assert set(written) >= {"published", "seconds", "parameters", "stopped", "seed"}
    assert written["parameters"]["total"] == sum(p.numel() for p in result.model.parameters())
    assert result.score == result.scores["test"]["log10_mse"]
    text = (tmp_path / "run" / "metrics.jsonl").read_text()
    assert "seconds" not in text and "time" not in text


def test_configuration_of_a_run_reruns_as_it_is(tiny, tmp_path):
    train(tiny, run_dir=tmp_path / "run")
    train(tmp_path / "run" / "config.toml", run_dir=tmp_path / "again")
    assert contents(tmp_path / "run") == contents(tmp_path / "again")


def test_same_seed_same_bytes_other_seed_others(tiny, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(tiny, run_dir=tmp_path / name, seed=seed)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a["metrics.jsonl"] != c["metrics.jsonl"]
    assert a["best.safetensors"] != c["best.safetensors"]


def test_random_numbers_of_the_caller_are_left_alone(tiny):
    before = torch.get_rng_state()
    first = train(tiny)
    assert torch.get_rng_state().equal(before)
    torch.rand(3)
    assert train(tiny).scores == first.scores


@pytest.mark.parametrize(
    "bad", [{"readout": "none"}, {"act": "Module"}, {"hidden_channels": 100_000_000}]
)
def test_a_configuration_without_a_network_does_not_block_its_directory(tiny, tmp_path, bad):
    with pytest.raises(ValueError) as error:
        train(tiny, model={**tiny["model"], **bad}, run_dir=tmp_path / "run")
    assert len(str(error.value).splitlines()) == 1
    assert [path.name for path in (tmp_path / "run").glob("*")] in ([], [".lock"])
    assert train(tiny, run_dir=tmp_path / "run").epochs == 4


def test_a_damaged_result_is_told_when_a_run_goes_on(tiny, tmp_path):
    train(tiny, run_dir=tmp_path)
    (tmp_path / "result.json").write_text("garbage")
    with pytest.raises(DamagedRunError, match=r"result\.json is damaged"):
        resume(tmp_path)


def test_with_and_without_a_directory_the_same_comes_out(tiny, tmp_path):
    on_disk, in_memory = train(tiny, run_dir=tmp_path / "run"), train(tiny)
    assert on_disk.scores == in_memory.scores
    assert on_disk.history == in_memory.history
    assert in_memory.run_dir is None


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_stopped_and_resumed_run_equals_one_that_ran_through(tiny, tmp_path, steps):
    train(tiny, run_dir=tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(tiny, run_dir=tmp_path / "run", callbacks=[StopAfter(steps)])
    result = resume(tmp_path / "run")
    assert contents(tmp_path / "whole") == contents(tmp_path / "run")
    assert result.epochs == 4


def test_best_weights_are_those_of_the_result(tiny, tmp_path):
    result = train(tiny, run_dir=tmp_path / "run")
    assert evaluate(tmp_path / "run") == dict(result.scores)
    assert evaluate(tmp_path / "run", ["val"]) == {"val": result.scores["val"]}
    model = open_run(tmp_path / "run").model
    for ours, theirs in zip(model.parameters(), result.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(ConfigError, match="split='tets' is not there"):
        evaluate(tmp_path / "run", ["tets"])


def test_predictions_come_with_their_targets(tiny, tmp_path):
    result = train(tiny, run_dir=tmp_path / "run")
    error, count = 0.0, 0
    for split, batch in predict(tmp_path / "run", ["test"]):
        assert split == "test"
        error += float((batch["prediction"] - batch["target"]).double().square().sum())
        count += batch["target"].numel()
    assert error / count == pytest.approx(result.scores["test"]["mse"], rel=1e-6)


def test_test_split_is_not_looked_at_before_the_end(tiny, monkeypatch):
    from adgn.training.trainer import Trainer

    looked, evaluate_split = [], Trainer.evaluate

    def watched(self, split="val", source=None):
        looked.append((split, self.progress.epoch))
        return evaluate_split(self, split, source)

    monkeypatch.setattr(Trainer, "evaluate", watched)
    train(tiny)
    assert [entry for entry in looked if entry[0] == "test"] == [("test", 4)]
    assert looked[-1] == ("test", 4)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["batched", "full graph"])
def test_killed_at_random_moments_ends_with_the_same_bytes(kind, tiny, tmp_path, request):
    kills = int(os.environ.get("ADGN_TEST_KILLS", "6"))
    if kind == "batched":
        config = TrainConfig(**{**tiny, "loop": {"max_epochs": 30, "batch_size": 4}})
    else:
        root = str(request.getfixturevalue("data_root"))
        config = TrainConfig(
            task={"name": "texas", "root": root},
            model={"hidden_channels": 8, "num_layers": 2, "dropout": 0.3},
            schedule={"name": "plateau", "patience": 3},
            loop={"max_epochs": 50},
        )
    settings = config.model_dump()
    settings["checkpoint"] = {"every_seconds": 0.0}  # a state after every step
    (tmp_path / "config.toml").write_text(to_toml(TrainConfig(**settings)), encoding="utf-8")
    arguments = [str(tmp_path / "config.toml"), str(tmp_path), str(kills), "7"]
    done = warm.run(warm.script(HERE / "killed_runs.py", *arguments))
    assert done.returncode == 0, done.stderr
    told = re.fullmatch(r"(\d+) kills, (\d+) in the middle of the run; all equal\n", done.stdout)
    assert told, done.stdout
    assert int(told[1]) == kills
    assert 2 * int(told[2]) >= kills


class DiskFull:
    """Lets a number of writes through to the disk, then there is no room."""

    def __init__(self, monkeypatch, writes):
        self.left = writes
        self.real = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, descriptor):
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.real(descriptor)


@pytest.mark.long
def test_full_disk_at_any_write_leaves_a_run_that_can_go_on(tiny, tmp_path, monkeypatch):
    tiny["checkpoint"] = {"every_epochs": 1, "every_seconds": "none"}
    tiny["loop"]["max_epochs"] = 2
    train(tiny, run_dir=tmp_path / "whole")
    refused = 0
    for writes in range(200):
        folder = tmp_path / f"run-{writes}"
        with monkeypatch.context() as patch:
            DiskFull(patch, writes)
            try:
                train(tiny, run_dir=folder)
                break
            except RunError as error:
                assert "No space left on device" in str(error)
                refused += 1
        assert not list(folder.rglob("*.tmp"))
        train(tiny, run_dir=folder, resume=True)
        assert contents(folder) == contents(tmp_path / "whole")
    assert refused > 10  # every write of the run was refused once


def test_really_full_disk(tiny, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(mount)], capture_output=True
    )
    if made.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        tiny["model"]["hidden_channels"] = 16
        filler = mount / "filler"
        with pytest.raises(Interrupted):
            train(tiny, run_dir=mount / "run", callbacks=[StopAfter(3)])
        before = contents_of_state(mount / "run")
        with (
            filler.open("wb", buffering=0) as file,
            pytest.raises(OSError, match="No space left"),
        ):
            while True:
                file.write(bytes(1024))
        with pytest.raises(RunError, match=r"No space left on device.*adgn resume"):
            resume(mount / "run")
        assert contents_of_state(mount / "run") == before
        filler.unlink()
        resume(mount / "run")
        train(tiny, run_dir=tmp_path / "whole")
        assert contents(mount / "run") == contents(tmp_path / "whole")
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def contents_of_state(folder):
    return {path.name: path.read_bytes() for path in (folder / "state").iterdir()}


def test_directory_that_cannot_be_written(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot make the run directory"):
        train(tiny, run_dir=tmp_path / "file" / "run")


def test_existing_runs_are_refused_with_what_to_do(tiny, tmp_path):
    with pytest.raises(Interrupted):
        train(tiny, run_dir=tmp_path / "run", callbacks=[StopAfter(2)])
    with pytest.raises(RunError, match="not finished; go on with `adgn resume"):
        train(tiny, run_dir=tmp_path / "run")
    with pytest.raises(RunError, match=r"another configuration.*seed: 5, not 6"):
        train(tiny, run_dir=tmp_path / "run", resume=True, seed=6)
    resume(tmp_path / "run")
    before = contents(tmp_path / "run"), (tmp_path / "run" / "result.json").read_bytes()
    with pytest.raises(RunError, match="finished run"):
        train(tiny, run_dir=tmp_path / "run")
    assert resume(tmp_path / "run").epochs == 4  # nothing left to do
    after = contents(tmp_path / "run"), (tmp_path / "run" / "result.json").read_bytes()
    assert before == after


def test_resuming_needs_a_run(tiny, tmp_path):
    with pytest.raises(RunError, match="not a run directory"):
        resume(tmp_path)
    with pytest.raises(RunError, match="needs a run_dir"):
        train(tiny, resume=True)


def test_configuration_changed_under_a_state_is_noticed(tiny, tmp_path):
    with pytest.raises(Interrupted):
        train(tiny, run_dir=tmp_path / "run", callbacks=[StopAfter(2)])
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("max_epochs = 4", "max_epochs = 9"))
    with pytest.raises(RunError, match=r"does not belong to the state.*loop.max_epochs: 9, not 4"):
        resume(tmp_path / "run")


def test_a_run_from_before_a_setting_was_added_goes_on(tiny, tmp_path):
    """Configuration, state and weights without it have its default, and no other value."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    train(tiny, run_dir=whole)
    with pytest.raises(Interrupted):
        train(tiny, run_dir=run, callbacks=[StopAfter(3)])
    config = run / "config.toml"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if not line.startswith("direction")))
    states = RunDirectory(run).states
    state = states.load()
    assert state["config"]["model"].pop("direction") == "in"
    states.save(state)
    weights, about = load_weights(run / "best.safetensors")
    assert about["config"]["model"].pop("direction") == "in"
    save_weights(run / "best.safetensors", weights, about)
    assert evaluate(run)["test"]
    resume(run)
    assert (run / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    config.write_text(config.read_text().replace("[model]\n", '[model]\ndirection = "out"\n'))
    with pytest.raises(DamagedRunError, match=r"model\.direction: 'out', not 'in'"):
        evaluate(run)


@pytest.mark.parametrize("direction", ["out", "both", "undirected"])
def test_batches_of_graphs_in_every_direction(tiny, tmp_path, direction):
    tiny["model"]["direction"] = direction
    tiny["model"]["name"] = "gcn" if direction == "undirected" else "adgn"
    result = train(tiny, run_dir=tmp_path / "run")
    assert result.model.configuration["direction"] == direction
    again = evaluate(tmp_path / "run")
    assert again["test"] == pytest.approx(result.scores["test"])


def test_shortened_metrics_are_noticed(tiny, tmp_path):
    with pytest.raises(Interrupted):
        train(tiny, run_dir=tmp_path / "run", callbacks=[StopAfter(5)])
    metrics = tmp_path / "run" / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-5])
    with pytest.raises(DamagedRunError, match=r"metrics.jsonl is damaged"):
        resume(tmp_path / "run")


def test_diverging_run_keeps_its_last_finite_state(tiny, tmp_path):
    tiny["optimizer"] = {"name": "sgd", "lr": 1e30}
    tiny["loop"]["max_epochs"] = 50
    with pytest.raises(DivergedError, match="Lower the learning rate"):
        train(tiny, run_dir=tmp_path / "run")
    state = RunDirectory(tmp_path / "run").load_state(TrainConfig(**tiny))
    assert all(bool(w.isfinite().all()) for w in state["trainer"]["weights"].values())
    assert not (tmp_path / "run" / "result.json").exists()


def test_diverging_run_keeps_its_best_weights(tiny, tmp_path):
    class Explode(Callback):
        def on_epoch(self, trainer, line):
            if line["epoch"] == 2:
                trainer.optimizer.param_groups[0]["lr"] = 1e30

    tiny["schedule"] = {"name": "none"}
    with pytest.raises(DivergedError):
        train(tiny, run_dir=tmp_path / "run", callbacks=[Explode()])
    scores = evaluate(tmp_path / "run", ["val"])["val"]
    best = min(line["val"]["log10_mse"] for line in RunDirectory(tmp_path / "run").history())
    assert scores["log10_mse"] == best


def test_result_is_valid_json_for_every_reader(tiny, tmp_path):
    train(tiny, run_dir=tmp_path / "run")

    def refuse(constant):
        raise ValueError(constant)

    result = (tmp_path / "run" / "result.json").read_text()
    metrics = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(result, parse_constant=refuse)["task"] == "graph-transfer"
    lines = [json.loads(line, parse_constant=refuse) for line in metrics]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]


@pytest.fixture
def from_a_gpu(tiny, tmp_path):
    """A run in its second epoch whose configuration names a GPU that this machine has not."""
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(tiny, run_dir=folder, callbacks=[StopAfter(3)])
    config = folder / "config.toml"
    config.write_text(config.read_text().replace('device = "cpu"', 'device = "cuda:99"'))
    return folder


def test_a_run_of_a_gpu_can_be_opened_without_one(from_a_gpu, tiny, tmp_path):
    whole = train(tiny, run_dir=tmp_path / "whole")
    with pytest.raises(ConfigError, match=r"has device='cuda:99'.*torch sees.*device='cpu'"):
        resume(from_a_gpu)
    before = (from_a_gpu / "config.toml").read_bytes()
    result = resume(from_a_gpu, device="cpu")
    assert result.scores == whole.scores
    assert result.config.device == "cpu"
    assert (from_a_gpu / "config.toml").read_bytes() == before
    assert evaluate(from_a_gpu, device="cpu") == dict(whole.scores)
    assert open_run(from_a_gpu, device="cpu").config.device == "cpu"
    (_, batch), *_ = predict(from_a_gpu, ["test"], device="cpu")
    assert batch["target"].device.type == "cpu"
    with pytest.raises(ConfigError, match=r"has device='cuda:99'.*torch sees.*device='cpu'"):
        evaluate(from_a_gpu)
    with pytest.raises(ConfigError, match="device='gpu' is not known"):
        evaluate(from_a_gpu, device="gpu")


def test_what_scores_do_not_depend_on_may_change_when_a_run_goes_on(from_a_gpu, tiny):
    tiny["checkpoint"] = {"every_epochs": 1}
    assert train(tiny, run_dir=from_a_gpu, resume=True).epochs == 4


def test_a_missing_device_is_told_before_anything_is_loaded_or_written(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("adgn.training.preparation.task_entry", None)  # looking for data would fail
    with pytest.raises(ConfigError, match="device='cuda:99' is not there: torch sees"):
        train(tiny, run_dir=tmp_path / "run", device="cuda:99")
    assert not (tmp_path / "run").exists()


def test_a_finished_run_without_its_state_is_evaluated_and_left_alone(tiny, tmp_path):
    tiny["stopping"] = {"patience": 1}
    tiny["loop"]["max_epochs"] = 40
    folder = tmp_path / "run"
    first = train(tiny, run_dir=folder)
    shutil.rmtree(folder / "state")
    before = contents(folder), (folder / "result.json").read_bytes()
    for again in (resume(folder), train(tiny, run_dir=folder, resume=True)):
        assert (contents(folder), (folder / "result.json").read_bytes()) == before
        assert not (folder / "state").exists()
        for name in ("config", "scores", "best_epoch", "epochs", "stopped", "constant"):
            assert getattr(again, name) == getattr(first, name), name
        for name in ("published", "notes", "parameters", "history", "run_dir"):
            assert getattr(again, name) == getattr(first, name), name
        assert again.seconds == pytest.approx(first.seconds, abs=1e-3)
        ours, theirs = again.model.state_dict(), first.model.state_dict()
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)
    unseen = train(tiny, run_dir=folder, resume=True, evaluate_test=False)
    assert set(unseen.scores) == {"train", "val"}


def test_metrics_changed_after_the_run_are_refused(tiny, tmp_path):
    folder = tmp_path / "run"
    train(tiny, run_dir=folder)
    shutil.rmtree(folder / "state")
    metrics = folder / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"epoch": 2', '"epoch": 7'))
    with pytest.raises(DamagedRunError, match=r"metrics.jsonl is not the file that was written"):
        resume(folder)


def rewrite_state(directory, change):
    """Writes the state of a run again, with its configuration changed."""
    state = directory.states.load()
    change(state["config"])
    directory.states.save(state)


def without_later_settings(settings):
    """As a version wrote them that did not have them yet; all are at their defaults."""
    del settings["model"]["integrator"], settings["loop"]["clip_norm"]
    settings.pop("checkpoint", None)


def test_a_setting_that_was_added_since_has_its_default(tiny, tmp_path):
    whole = train(tiny, run_dir=tmp_path / "whole")
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(tiny, run_dir=folder, callbacks=[StopAfter(5)])
    rewrite_state(RunDirectory(folder), without_later_settings)
    assert resume(folder).scores == whole.scores
    assert contents(folder) == contents(tmp_path / "whole")
    weights, about = load_weights(folder / "best.safetensors")
    without_later_settings(about["config"])
    save_weights(folder / "best.safetensors", weights, about)
    assert evaluate(folder) == dict(whole.scores)


def test_a_setting_that_is_unknown_here_is_refused(tiny, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(Interrupted):
        train(tiny, run_dir=folder, callbacks=[StopAfter(5)])
    rewrite_state(RunDirectory(folder), lambda settings: settings["loop"].update(newer=3))
    with pytest.raises(RunError, match=r"does not belong to the state.*unknown key 'newer'"):
        resume(folder)
