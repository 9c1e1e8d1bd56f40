"""The commands of a run: what they print, write and refuse, in one process and in real ones."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.cli.train import _new_folder
from adgn.training import RunDirectory
from tests import warm

TINY = [
    "graph-transfer",
    *("--set", "task.distance=2", "--set", "task.train=12", "--set", "task.val=6"),
    *("--set", "task.test=6", "--set", "model.hidden_channels=4"),
]
PROGRAM = [sys.executable, "-W", "ignore", "-c", "from adgn.cli import main; main()"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fails(*arguments):
    """The message of a refusal, as the program itself prints it."""
    result = run(*arguments)
    assert result.exit_code != 0
    return str(result.exception) + result.output


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    result = run("train", *TINY, "--set", "loop.max_epochs=3", "--seed", 9, "--run-dir", folder)
    assert result.exit_code == 0, result.output
    return folder, result


def test_train_prints_scores_beside_the_constant_and_keeps_the_run(finished):
    folder, result = finished
    assert re.search(r"test +\d\.\d{4}", result.stdout)
    assert "constant predictor (test)" in result.stdout
    assert "3 epochs" in result.stdout
    assert f"kept in {folder}" in result.stdout
    config = RunDirectory(folder).config()
    assert (config.seed, config.loop.max_epochs, config.task.distance) == (9, 3, 2)


def test_progress_goes_to_standard_error_as_plain_lines(finished):
    _, result = finished
    assert "epoch 1/3" in result.stderr
    assert "epoch 3/3" in result.stderr
    assert "\x1b" not in result.stderr
    assert "epoch 1/3" not in result.stdout


def test_evaluate_and_predict(finished, tmp_path):
    folder, _ = finished
    shown = run("evaluate", folder).stdout
    expected = json.loads((folder / "result.json").read_text())["scores"]["test"]["mse"]
    assert f"{expected:.4f}" in shown
    done = run("predict", folder, "--out", tmp_path / "p.csv")
    assert "24 predictions written" in done.stdout
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 25


def test_classes_have_rankings_and_probabilities(tmp_path):
    settings = ("task.radius=2", "loop.passes_per_epoch=1", "stopping.monitor=roc_auc")
    chosen = [word for setting in settings for word in ("--set", setting)]
    folder = tmp_path / "run"
    limit = ("--set", "loop.max_epochs=2")
    assert run("train", "tree-neighbors-match", *chosen, *limit, "--run-dir", folder).exit_code == 0
    scores = json.loads((folder / "result.json").read_text())["scores"]["test"]
    shown = run("evaluate", folder).stdout.splitlines()
    assert shown[0].split() == ["split", *scores]
    assert shown[-1].split() == ["test", *(f"{score:.4f}" for score in scores.values())]
    assert {"roc_auc", "average_precision"} < set(scores)
    run("predict", folder, "--out", tmp_path / "p.csv")
    head = (tmp_path / "p.csv").read_text().splitlines()[0].split(",")
    assert head[:5] == ["split", "graph", "node", "prediction", "target"]
    assert head[5:] == [f"probability_{number}" for number in range(5)]


def test_a_configuration_file_with_settings_on_top(finished, tmp_path):
    folder, _ = finished
    config = folder / "config.toml"
    done = run("train", "--config", config, "--run-dir", tmp_path / "a")
    assert done.exit_code == 0
    same = (tmp_path / "a" / "metrics.jsonl").read_bytes()
    assert same == (folder / "metrics.jsonl").read_bytes()
    done = run(
        "train", "--config", config, "--set", "loop.max_epochs=1", "--run-dir", tmp_path / "b"
    )
    assert done.exit_code == 0
    assert RunDirectory(tmp_path / "b").config().loop.max_epochs == 1


def test_models_by_name_and_new_folders_below_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("graph-transfer-gcn-0", "graph-transfer-gcn-0-2"):
        done = run("train", *TINY, "--model", "gcn", "--set", "loop.max_epochs=1")
        assert done.exit_code == 0
        assert (tmp_path / "runs" / folder / "result.json").exists()


def test_each_of_two_programs_started_at_once_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [_new_folder("sssp-adgn-0") for _ in range(3)]  # before any of them has begun
    assert [folder.name for folder in folders] == ["sssp-adgn-0", "sssp-adgn-0-2", "sssp-adgn-0-3"]


def test_a_bad_configuration_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for setting in ("model.readout=none", "model.act=Module", "device=meta"):
        assert run("train", *TINY, "--set", setting).exit_code == 1
        assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


def test_a_bad_configuration_can_be_corrected_in_its_directory(tmp_path):
    arguments = ["--set", "loop.max_epochs=1", "--run-dir", tmp_path / "run"]
    assert "readout" in fails("train", *TINY, *arguments, "--set", "model.readout=none")
    assert "not a run directory" in fails("resume", tmp_path / "run")
    assert run("train", *TINY, *arguments).exit_code == 0


def test_an_unusable_folder_for_runs_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").touch()
    assert "give another --run-dir" in fails("train", *TINY)


@pytest.mark.parametrize("command", ["resume", "evaluate", "predict"])
def test_a_pipe_among_the_files_of_a_run_is_refused(finished, tmp_path, command):
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    (folder / "config.toml").unlink()
    os.mkfifo(folder / "config.toml")
    extra = ["--out", tmp_path / "p.csv"] if command == "predict" else []
    assert "config.toml cannot be used for a run: it is a pipe" in fails(command, folder, *extra)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "ssp"], "Did you mean 'sssp'"),
        (["train", "sssp", "--model", "adng"], "Did you mean 'adgn'"),
        (["train", "sssp", "--set", "optimizer.l=3"], "Did you mean 'lr'"),
        (["train", "sssp", "--set", "lr=3"], "Did you mean 'optimizer.lr'"),
        (["train", "sssp", "--set", "optimizer.lr"], "is not a setting"),
        (["train", "sssp", "--set", f"seed={'9' * 4000}"], "seed has an integer of more than 64"),
        (["train", "sssp", "--run-dir", "n" * 300], "File name too long; choose another"),
        (["resume", "n" * 300], "File name too long; choose another"),
        (["train", "--config", "nowhere.toml"], "no configuration file"),
        (["train"], "give a TASK"),
        (["train", "sssp", "--sead", "3"], "No such option"),
        (["resume", "nowhere"], "not a run directory"),
        (["evaluate", "nowhere"], "not a run directory"),
        (["tasks", "ssp"], "Did you mean 'sssp'"),
    ],
)
def test_wrong_commands_are_refused_with_the_remedy(arguments, message):
    assert message in fails(*arguments)


def test_existing_run_is_refused(finished):
    folder, _ = finished
    assert "finished run" in fails("train", *TINY, "--run-dir", folder)


def test_resume_of_a_finished_run_shows_it(finished):
    folder, _ = finished
    done = run("resume", folder)
    assert done.exit_code == 0
    assert "3 epochs" in done.stdout


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


LONG = ["--set", "loop.max_epochs=200", "--set", "stopping.patience=none"]


@pytest.mark.long
def test_ctrl_c_stops_cleanly_and_the_run_goes_on_to_the_same_end(tmp_path):
    folder = tmp_path / "run"
    process = warm.Popen(
        [*PROGRAM, "train", *TINY, *LONG, "--run-dir", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    metrics = folder / "metrics.jsonl"
    wait_for(lambda: metrics.exists() and metrics.stat().st_size > 2000)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert f"To go on: adgn resume {folder}" in stderr
    assert "Traceback" not in stderr
    assert not (folder / "result.json").exists()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = tmp_path / "whole"
    for command in (["resume", folder], ["train", *TINY, *LONG, "--run-dir", whole]):
        done = warm.run([*PROGRAM, *command], env=environment)
        assert done.returncode == 0, done.stderr
    assert metrics.read_bytes() == (whole / "metrics.jsonl").read_bytes()
    best = "best.safetensors"
    assert (folder / best).read_bytes() == (whole / best).read_bytes()


def test_a_terminal_gets_a_bar_with_epoch_loss_best_score_and_time_left(tmp_path):
    ours, theirs = pty.openpty()
    arguments = ["train", *TINY, *LONG, "--run-dir", str(tmp_path / "run")]
    process = warm.Popen(
        [*PROGRAM, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"epoch \d+/200, loss \S+, best val log10_mse -?\d\.\d+, at most 0:0", text)


def test_tensorboard_events_on_request(tmp_path):
    pytest.importorskip("tensorboard")
    arguments = ["--set", "loop.max_epochs=1", "--tensorboard", "--run-dir", tmp_path / "run"]
    assert run("train", *TINY, *arguments).exit_code == 0
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


SMALL_GRAPHS = ("task.min_nodes=6", "task.train=[2,8]", "task.val=[1,4]", "task.test=[1,4]")


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("sssp", SMALL_GRAPHS),
        ("diameter", SMALL_GRAPHS),
        ("tree-neighbors-match", ("task.radius=3", "loop.passes_per_epoch=1")),
        ("cs", ("model.num_layers=2",)),
        ("texas", ("model.num_layers=2",)),
    ],
)
def test_the_papers_tasks_from_the_command_line(task, settings, request, tmp_path, monkeypatch):
    real = task in ("cs", "texas")
    root = request.getfixturevalue("data_root") if real else tmp_path / "data"
    monkeypatch.setenv("ADGN_DATA", str(root))
    chosen = [word for setting in settings for word in ("--set", setting)]
    arguments = [*chosen, "--set", "loop.max_epochs=2", "--run-dir", tmp_path / "run"]
    result = run("train", task, *arguments)
    assert result.exit_code == 0, result.output
    assert "2 epochs" in result.stdout
    scores = json.loads((tmp_path / "run" / "result.json").read_text())["scores"]
    assert set(scores) >= ({"train"} if task == "tree-neighbors-match" else {"train", "test"})
    assert RunDirectory(tmp_path / "run").config().task.name == task


def test_a_run_of_a_gpu_on_a_machine_without_one(finished, tmp_path, monkeypatch):
    monkeypatch.setattr("adgn.analysis.figures.write_figures", lambda *_: [])  # they take longest
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace('device = "cpu"', 'device = "cuda:99"'))
    assert "--device cpu" in fails("evaluate", folder)
    for command in ("evaluate", "resume", "predict", "analyze"):
        extra = {"predict": ["--out", tmp_path / "p.csv"], "analyze": ["--out", tmp_path / "a"]}
        done = run(command, folder, "--device", "cpu", *extra.get(command, []))
        assert done.exit_code == 0, done.output
    assert "torch sees" in fails("train", *TINY, "--set", "device=cuda:99")
