import pytest
import torch

from adgn.training import Callback, TrainConfig, prepare, train
from adgn.training.denormals import flushed_denormals, flushing_denormals

if not torch.set_flush_denormal(True):
    pytest.skip("this processor cannot flush denormal numbers", allow_module_level=True)
torch.set_flush_denormal(False)

TINY = {
    "task": {"name": "graph-transfer", "distance": 3, "train": 8, "val": 8, "test": 8},
    "loop": {"max_epochs": 2},
}


class Looks(Callback):
    def __init__(self):
        self.seen = []

    def on_epoch(self, trainer, line):
        self.seen.append(flushing_denormals())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_denormal_number_counts_as_zero(dtype):
    tiny = torch.tensor(torch.finfo(dtype).smallest_normal / 4, dtype=dtype)
    assert tiny.mul(2) != 0
    with flushed_denormals():
        assert tiny.mul(2) == 0
    assert tiny.mul(2) != 0


def test_during_a_run_and_not_after_it():
    looks = Looks()
    train(TINY, callbacks=[looks])
    assert looks.seen == [True, True]
    assert not flushing_denormals()


def test_also_after_a_run_that_failed():
    class Fails(Callback):
        def on_epoch(self, trainer, line):
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        train(TINY, callbacks=[Fails()])
    assert not flushing_denormals()


def test_a_user_s_own_setting_stays():
    torch.set_flush_denormal(True)
    try:
        trainer = prepare(TrainConfig(**TINY)).trainer
        trainer.fit()
        trainer.evaluate()
        assert flushing_denormals()
    finally:
        torch.set_flush_denormal(False)
