"""Configurations and run directories that were damaged at random: an answer or a clear error."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adgn.data import DataError
from adgn.training import (
    RunDirectory,
    TrainConfig,
    TrainingError,
    evaluate,
    parse_setting,
    predict,
    read_config,
    resolve_config,
    resume,
    to_toml,
    train,
)

# What the command line shows as one message; anything else would be a traceback.
CLEAR = (DataError, TrainingError, ValueError)
TASKS = ["sssp", "texas", "graph-transfer", "tree-neighbors-match"]
TINY = {
    "task": {"name": "graph-transfer", "distance": 2, "train": 12, "val": 6, "test": 6},
    "model": {"hidden_channels": 4},
    "loop": {"max_epochs": 2, "batch_size": 7},
}
# Small numbers only: a large one in the place of a size is a valid wish for much work.
VALUES = [b"-1", b"0", b"1.5", b"nan", b"inf", b"true", b'""', b'"none"', b"[]", b"[[]]", b"{}"]
VALUES += [b"{a=1}", b"1979-05-27", b"07:32:00", b"'''", b"[task]", b"\xff", b"=", b"a.b.c = 1"]


@st.composite
def damage(draw, content: bytes) -> bytes:
    """The content with one to three slips: bytes changed, cut, doubled, values replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 40)))
        kind = draw(st.sampled_from(["flip", "cut", "end", "double", "insert", "value"]))
        if kind == "flip" and start < len(content):
            changed = content[start] ^ draw(st.integers(1, 255))
            content = content[:start] + bytes([changed]) + content[start + 1 :]
        elif kind == "cut":
            content = content[:start] + content[end:]
        elif kind == "end":
            content = content[:start]
        elif kind == "double":
            content = content[:end] + content[start:end] + content[end:]
        elif kind == "insert":
            content = content[:start] + draw(st.binary(max_size=8)) + content[start:]
        elif kind == "value":
            lines = content.split(b"\n")
            number = draw(st.integers(0, len(lines) - 1))
            key, equals, _ = lines[number].partition(b"=")
            lines[number] = key + equals + draw(st.sampled_from(VALUES))
            content = b"\n".join(lines)
    return content


def check_clear(error: BaseException) -> None:
    assert str(error).strip(), repr(error)


@given(st.data())
def test_configuration_files(data):
    text = to_toml(resolve_config(data.draw(st.sampled_from(TASKS)))).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_bytes(data.draw(damage(text)))
        try:
            config = resolve_config(read_config(path))
        except CLEAR as error:
            check_clear(error)
        else:
            assert isinstance(config, TrainConfig)


@given(st.sampled_from(["optimizer.lr", "task.train", "model.act", "loop", "seed", ""]), st.text())
def test_settings_of_the_command_line(key, value):
    for text in (f"{key}={value}", f"{value}={key}", value):
        try:
            resolve_config("graph-transfer", parse_setting(text))
        except CLEAR as error:
            check_clear(error)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(TINY, run_dir=folder)
    return folder


def use(folder: Path) -> None:
    """Everything that reads a run directory."""
    directory = RunDirectory(folder)
    for action in (
        directory.config,
        directory.result,
        lambda: evaluate(folder),
        lambda: predict(folder),
        lambda: resume(folder),
    ):
        try:
            action()
        except CLEAR as error:
            check_clear(error)


@settings(max_examples=settings.default.max_examples // 5)  # each takes a third of a second
@given(st.data())
def test_run_directories(run, data):
    files = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        shutil.copytree(run, folder)
        damaged = data.draw(st.sampled_from(files))
        path = folder / damaged
        content = path.read_bytes()
        if damaged.suffix == ".toml":
            # A valid number in another place would be another, perhaps very long, run.
            path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        else:
            path.write_bytes(data.draw(damage(content)))
        if data.draw(st.booleans()):  # as if the run had not ended
            (folder / "result.json").unlink()
        if data.draw(st.integers(0, 4)) == 0:
            (folder / data.draw(st.sampled_from(files))).unlink(missing_ok=True)
        use(folder)
