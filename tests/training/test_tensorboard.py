import builtins

import pytest

from adgn.training import ConfigError, train
from adgn.training.tensorboard import event_writer


def test_scores_of_every_epoch_are_written(tiny, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with event_writer(tmp_path) as callbacks:
        result = train(tiny, callbacks=callbacks)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = [scalar.value for scalar in events.Scalars("val/log10_mse")]
    assert found == pytest.approx([line["val"]["log10_mse"] for line in result.history])
    assert [scalar.step for scalar in events.Scalars("train_loss")] == [1, 2, 3, 4]


def test_missing_package_is_told_before_any_work(tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("torch.utils.tensorboard"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ConfigError, match=r"adgn\[tensorboard\]"), event_writer(tmp_path):
        pass
