import json

import pytest

from adgn.selection.paused_runs import curve_epochs, train_to
from adgn.training import Callback, Interrupted, RunDirectory, RunError, resolve_config, train

TASK = {"name": "graph-transfer", "distance": 2, "train": 24, "val": 6, "test": 6}


def config(**changes):
    settings = {
        "task": TASK,
        "model": {"hidden_channels": 4, "num_layers": 2, "dropout": 0.2},
        "loop": {"max_epochs": 14, "batch_size": 6},
        "schedule": {"name": "cosine"},  # goes by the last epoch, which a pause must not change
        "stopping": {"patience": 4},
    }
    return resolve_config({**settings, **changes})


def never():
    return False


def paused(folder, *rungs, settings=None):
    seen = None
    for epochs in rungs:
        seen = train_to(epochs, settings or config(), folder, never)
    return seen


def lines_of(folder):
    return (folder / "metrics.jsonl").read_bytes()


def without_times(directory):
    result = RunDirectory(directory).result()
    return {key: value for key, value in result.items() if "seconds" not in key}


def test_a_run_that_paused_is_the_same_bit_for_bit(tmp_path):
    train(config(), run_dir=tmp_path / "whole", evaluate_test=False)
    epochs = RunDirectory(tmp_path / "whole").result()["epochs"]
    assert epochs > 7
    seen = paused(tmp_path / "paused", 1, 3, 7, 14)
    assert lines_of(tmp_path / "paused") == lines_of(tmp_path / "whole")
    assert without_times(tmp_path / "paused") == without_times(tmp_path / "whole")
    weights = [(tmp_path / name / "best.safetensors").read_bytes() for name in ("paused", "whole")]
    assert weights[0] == weights[1]
    assert seen.facts["epochs"] == epochs


def test_a_run_goes_on_from_where_it_paused(tmp_path, monkeypatch):
    trained = []

    class Count(Callback):
        def on_epoch(self, trainer, line):
            trained.append(line["epoch"])

    def counting(config, *, callbacks, **options):
        return train(config, callbacks=[*callbacks, Count()], **options)

    monkeypatch.setattr("adgn.selection.paused_runs.train", counting)
    paused(tmp_path, 1, 3, 7)
    assert trained == [1, 2, 3, 4, 5, 6, 7]


def test_a_pause_is_not_the_end(tmp_path):
    seen = paused(tmp_path, 3)
    directory = RunDirectory(tmp_path)
    assert directory.result() is None
    assert directory.config().loop.max_epochs == 14
    assert len(seen.lines) == 3
    assert seen.result is None
    assert directory.load_state(config())["trainer"]["progress"]["epoch"] == 3
    best = min(line["val"]["log10_mse"] for line in seen.lines)
    assert seen.best("val", 3)["log10_mse"] == best
    assert seen.scores("val")["log10_mse"] == best


def test_early_stopping_counts_over_pauses(tmp_path):
    settings = config(optimizer={"lr": 1e-12}, stopping={"patience": 2, "ties": False})
    assert paused(tmp_path / "a", 2, settings=settings).result is None
    seen = paused(tmp_path / "a", 3, 4, settings=settings)
    whole = train(settings, run_dir=tmp_path / "b", evaluate_test=False)
    assert seen.result["stopped"] == whole.stopped
    assert seen.result["epochs"] == whole.epochs
    # It is over, so any later rung finds it done, and an earlier one sees what was seen then.
    before = lines_of(tmp_path / "a")
    assert paused(tmp_path / "a", 14, settings=settings).result == seen.result
    assert paused(tmp_path / "a", 1, settings=settings).facts["epochs"] == 1
    assert lines_of(tmp_path / "a") == before


def test_a_run_that_is_there_already_does_not_go_on(tmp_path):
    first = paused(tmp_path, 4)
    again = paused(tmp_path, 4)
    assert again.lines == first.lines
    assert len(paused(tmp_path, 2).lines) == 2
    assert len(RunDirectory(tmp_path).history()) == 4


@pytest.mark.parametrize(
    "damage", ["cut off", "missing", "other bytes", "metrics", "configuration", "everything"]
)
def test_a_damaged_state_costs_that_run_alone(tmp_path, damage):
    expected = paused(tmp_path / "whole", 4, 8).lines
    folder = tmp_path / "damaged"
    paused(folder, 4)
    (tensors,) = (folder / "state").glob("*.safetensors")
    if damage == "cut off":
        tensors.write_bytes(tensors.read_bytes()[:-9])
    elif damage == "missing":
        tensors.unlink()
    elif damage == "other bytes":
        (folder / "state" / "manifest.json").write_text("{}")
    elif damage == "metrics":
        (folder / "metrics.jsonl").write_text(json.dumps({"epoch": 1}))
    elif damage == "configuration":
        (folder / "config.toml").unlink()
    else:
        for file in folder.rglob("*.*"):
            if file.is_file():
                file.write_bytes(b"\0")
    with pytest.warns(UserWarning, match="damaged starts again"):
        assert paused(folder, 8).lines == expected


def test_a_stop_is_no_pause(tmp_path):
    asked = iter([False] * 6)
    with pytest.raises(Interrupted):
        train_to(8, config(), tmp_path, lambda: next(asked, True))
    assert 0 < len(RunDirectory(tmp_path).history()) < 8
    whole = paused(tmp_path.with_name("whole"), 8)
    assert paused(tmp_path, 8).lines == whole.lines
    with pytest.raises(Interrupted, match="between two runs"):
        train_to(9, config(), tmp_path, lambda: True)


def test_the_run_of_another_configuration_is_refused(tmp_path):
    paused(tmp_path, 2)
    with pytest.raises(RunError, match="another configuration"):
        train_to(4, config(seed=7), tmp_path, never)


def test_reported_epochs_are_measured_ones():
    assert curve_epochs(0, 100, 40) == [40, 100]
    assert curve_epochs(50, 50, 1) == [50]
    assert curve_epochs(3, 5, 1) == [4, 5]
