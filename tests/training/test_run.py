import math
import os
import subprocess
import sys
import textwrap

import pytest

from adgn.training import DamagedRunError, RunDirectory, RunError, TrainConfig, resolve_config
from adgn.training.config import CheckpointConfig
from adgn.training.run import Checkpointer, strict_json
from tests import warm


def test_directory_of_a_live_process_is_refused_and_of_a_dead_one_is_not(tmp_path):
    code = """
        import sys
        from adgn.training import RunDirectory
        with RunDirectory(sys.argv[1]).lock():
            print("locked", flush=True)
            sys.stdin.read()
    """
    process = warm.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "locked\n"
    directory = RunDirectory(tmp_path)
    with pytest.raises(RunError, match="in use by another process"), directory.lock():
        pass
    process.kill()
    process.communicate()
    with directory.lock():
        pass


def test_foreign_directories_are_left_alone(tmp_path):
    (tmp_path / "thesis.doc").write_text("precious")
    with pytest.raises(RunError, match=r"holds 'thesis.doc', but no run"):
        RunDirectory(tmp_path).make()


def test_a_run_whose_configuration_could_not_be_written_can_begin_again(tmp_path, monkeypatch):
    directory, written = RunDirectory(tmp_path / "run"), []
    config = resolve_config("graph-transfer")
    monkeypatch.setattr("adgn.training.run.loaded_plugins", lambda: ["own_model"])

    def full_disk(path, data):
        if path == directory.config_file and not written:
            written.append(path)
            raise RunError("no space left")
        path.write_bytes(data)

    monkeypatch.setattr("adgn.training.run.write_atomically", full_disk)
    directory.make()
    with pytest.raises(RunError, match="no space left"):
        directory.begin(config)
    directory.make()
    directory.begin(config)
    assert directory.config_file.exists()


def test_left_over_temporary_files_are_no_hindrance(tmp_path):
    (tmp_path / ".config.toml.tmp").write_text("half a con")
    directory = RunDirectory(tmp_path)
    directory.make()
    directory.begin(TrainConfig("sssp"))
    assert directory.config() == TrainConfig("sssp")


LINKS = ("config.toml", "metrics.jsonl", "best.safetensors", "result.json", ".lock")


@pytest.mark.parametrize("name", [*LINKS, "state", "tensorboard"])
def test_a_link_in_the_place_of_a_file_is_refused(tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere" / "target")
    directory = RunDirectory(tmp_path / "run")
    for use in (directory.refuse_existing, directory.config, directory.lock().__enter__):
        with pytest.raises(RunError, match=f"{name} cannot be used for a run: it is a link"):
            use()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "result.json", "config.toml", "partition-2.safetensors"]
)
def test_a_folder_or_a_pipe_in_the_place_of_a_file_is_refused(tmp_path, name):
    directory = RunDirectory(tmp_path)
    (tmp_path / name).mkdir()
    with pytest.raises(RunError, match=f"{name} cannot be used for a run: it is a folder"):
        directory.config()
    (tmp_path / name).rmdir()
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunError, match=f"{name} cannot be used for a run: it is a pipe"):
        directory.config()


def test_results_and_histories_are_read_from_files_alone(tmp_path):
    directory = RunDirectory(tmp_path)
    for file, read in (
        (directory.result_file, directory.result),
        (directory.metrics_file, directory.history),
    ):
        os.mkfifo(file)
        with pytest.raises(RunError, match="it is a pipe, not a file"):
            read()


def test_a_name_that_is_too_long_is_refused(tmp_path):
    directory = RunDirectory(tmp_path / ("n" * 300))
    for use in (directory.refuse_existing, directory.config, directory.lock().__enter__):
        with pytest.raises(RunError, match=r"cannot be used for a run: File name too long; choose"):
            use()


def test_what_a_kill_left_is_removed_and_nothing_else(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.states.folder.mkdir()
    left = (
        ".result.json.0a1b.tmp",
        "state/.tensors-12ab.safetensors.tmp",
        "state/.manifest.json.1.tmp",
    )
    others = (".notes.tmp", "state/.notes.tmp")
    for name in (*left, *others):
        (tmp_path / name).touch()
    with directory.lock():
        assert not any((tmp_path / name).exists() for name in left)
        assert all((tmp_path / name).exists() for name in others)


def test_deeply_nested_files_are_told(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.config_file.write_text("a = " + "[" * 100_000)
    with pytest.raises(DamagedRunError, match=r"config.toml cannot be used.*nested too deeply"):
        directory.config()
    directory.config_file.write_text("a = " + "[" * 300 + "]" * 300)
    with pytest.raises(DamagedRunError, match=r"config.toml cannot be used"):
        directory.config()
    directory.result_file.write_text("[" * 100_000)
    with pytest.raises(DamagedRunError, match=r"result.json is damaged: it is nested more"):
        directory.result()
    directory.metrics_file.write_text("[" * 100_000)
    with pytest.raises(DamagedRunError, match=r"metrics.jsonl is damaged: it is nested more"):
        directory.history()
    directory.states.folder.mkdir()
    directory.states.manifest.write_text("[" * 100_000)
    with pytest.raises(DamagedRunError, match=r"manifest.json is damaged.*nested more than 100"):
        directory.load_state(TrainConfig("sssp"))


def test_damaged_files_are_told(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.config_file.write_text("seed = ")
    with pytest.raises(DamagedRunError, match=r"config.toml cannot be used.*not valid TOML"):
        directory.config()
    directory.config_file.write_text('sead = 3\n[task]\nname = "sssp"\n')
    with pytest.raises(DamagedRunError, match="Did you mean 'seed'"):
        directory.config()
    directory.result_file.write_text('{"task": ')
    with pytest.raises(DamagedRunError, match=r"result.json is damaged"):
        directory.result()


def test_a_changed_result_is_refused(tmp_path):
    directory = RunDirectory(tmp_path)
    directory.write_result({"task": "sssp", "scores": {"test": {"mse": 0.5, "mae": math.inf}}})
    assert directory.result() == {"task": "sssp", "scores": {"test": {"mse": 0.5, "mae": None}}}
    written = directory.result_file.read_text()
    directory.result_file.write_text(written.replace("0.5", "0.4"))
    with pytest.raises(DamagedRunError, match="does not have the checksum"):
        directory.result()
    directory.result_file.write_text('{"task": "sssp"}')
    with pytest.raises(DamagedRunError, match="does not have the checksum"):
        directory.result()


@pytest.mark.parametrize("content", [b'{"epoch": 1}\n{"epo', b"\xff\n"])
def test_damaged_metrics_are_told(tmp_path, content):
    directory = RunDirectory(tmp_path)
    directory.metrics_file.write_bytes(content)
    with pytest.raises(DamagedRunError, match=r"metrics.jsonl is damaged"):
        directory.history()


def test_a_run_that_has_not_begun_has_neither_history_nor_result(tmp_path):
    directory = RunDirectory(tmp_path)
    assert directory.history() == []
    assert directory.result() is None
    assert directory.load_state(TrainConfig("sssp")) is None


@pytest.mark.parametrize(
    ("cadence", "expected"),
    [
        ({"every_seconds": 0.0}, [True, True, True]),
        ({"every_seconds": None}, [False, False, False]),
        ({"every_seconds": None, "every_epochs": 2}, [False, True, True]),
        ({"every_seconds": 3600.0}, [False, False, False]),
    ],
)
def test_cadence_of_states(tmp_path, cadence, expected):
    config = TrainConfig("sssp", checkpoint=cadence)
    assert config.checkpoint == CheckpointConfig(**cadence)
    checkpointer = Checkpointer(RunDirectory(tmp_path), config)
    with checkpointer.metrics:
        state = {"best_weights": None, "stopping": {"best_epoch": None}, "progress": {"epoch": 0}}
        checkpointer.save(state)
        assert [checkpointer.due(epoch) for epoch in (1, 2, 3)] == expected


def test_scores_that_are_not_finite_are_null():
    assert strict_json({"a": [float("nan"), 1.5], "b": {"c": float("inf")}}) == (
        '{"a": [null, 1.5], "b": {"c": null}}'
    )
