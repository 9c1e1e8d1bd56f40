import os
import random
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from adgn.training import Callback, TrainConfig, TrainingError, prepare, train
from adgn.training.errors import ConfigError
from adgn.training.seeding import (
    derived_seed,
    flushed_denormals,
    flushing_denormals,
    own_randomness,
    random_state,
    resolve_device,
    restore_random_state,
    thread_count,
)


def draw():
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(1)


def test_state_puts_all_generators_back():
    draw()
    state = random_state()
    first = draw()
    restore_random_state(state)
    assert draw() == first


def test_caller_keeps_its_random_numbers_even_after_an_error():
    state = random_state()
    first = draw()
    restore_random_state(state)
    with pytest.raises(KeyError), own_randomness(3):
        draw()
        raise KeyError
    assert draw() == first


def test_same_seed_same_numbers_other_seed_others():
    numbers = []
    for seed in (1, 1, 2):
        with own_randomness(seed):
            numbers.append(draw())
    assert numbers[0] == numbers[1] != numbers[2]


def test_derived_seeds_differ_in_every_part():
    seeds = {derived_seed(a, b, c) for a in range(5) for b in ("x", "y") for c in range(50)}
    assert len(seeds) == 500
    assert derived_seed(1, 23) != derived_seed(12, 3)


@contextmanager
def held(whole_run):
    """Another thread has random numbers of its own, until the end or until `done` is set."""
    inside, done = threading.Event(), threading.Event()

    def hold():
        with own_randomness(1, whole_run=whole_run):
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(60)
    try:
        yield done
    finally:
        done.set()
        thread.join()


def test_a_run_in_another_thread_is_refused_and_one_in_the_same_is_not():
    before = random_state()
    refused = pytest.raises(TrainingError, match="another thread")
    with held(whole_run=True), refused, own_randomness(2):
        pass
    with own_randomness(2, whole_run=True), own_randomness(3, whole_run=True):
        draw()
    after = random_state()
    assert after["torch"].equal(before["torch"])
    assert after["python"]["words"].equal(before["python"]["words"])


def test_what_takes_a_moment_in_another_thread_is_waited_for():
    with held(whole_run=False) as done:
        threading.Timer(0.2, done.set).start()
        with own_randomness(2, whole_run=True):
            first = draw()
    with own_randomness(2):
        assert draw() == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_train_while_a_thread_of_its_parent_does():
    with held(whole_run=True):
        child = os.fork()
        if child == 0:
            try:
                with own_randomness(2, whole_run=True):
                    os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class WaitAfterAStep(Callback):
    """Holds a run in the middle until it may go on."""

    def __init__(self):
        self.waiting, self.go_on = threading.Event(), threading.Event()

    def on_step(self, trainer):
        self.waiting.set()
        assert self.go_on.wait(60)


def test_a_second_run_in_another_thread_is_refused_and_changes_nothing(tiny, tmp_path, monkeypatch):
    alone = train(tiny)
    before = torch.get_rng_state()
    first, results = WaitAfterAStep(), []
    thread = threading.Thread(target=lambda: results.append(train(tiny, callbacks=[first])))
    thread.start()
    assert first.waiting.wait(60)
    drawing = torch.get_rng_state()
    with monkeypatch.context() as patched:
        patched.setattr("torch.set_rng_state", lambda state: pytest.fail("a generator is set"))
        with pytest.raises(TrainingError, match=r"another thread of this process is training"):
            train(tiny, run_dir=tmp_path / "run")
    assert torch.get_rng_state().equal(drawing)
    assert not (tmp_path / "run" / "config.toml").exists()
    first.go_on.set()
    thread.join()
    assert results[0].scores == alone.scores
    assert torch.get_rng_state().equal(before)
    assert train(tiny, run_dir=tmp_path / "run").scores == alone.scores


def test_a_run_inside_a_callback_of_another_leaves_it_as_it_is(tiny):
    class TrainInside(Callback):
        scores = None

        def on_epoch(self, trainer, line):
            if self.scores is None:
                self.scores = train(tiny, seed=8).scores

    inside = TrainInside()
    assert train(tiny, callbacks=[inside]).scores == train(tiny).scores
    assert inside.scores == train(tiny, seed=8).scores


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


def test_auto_takes_a_gpu_where_there_is_one():
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_devices_that_are_not_there():
    with pytest.raises(ValueError, match="torch sees"):
        resolve_device(f"cuda:{torch.cuda.device_count()}")
    with pytest.raises(ValueError, match="'gpu' is not known"):
        resolve_device("gpu")


@pytest.mark.parametrize("name", ["meta", "xla", "hpu", "mtia"])
def test_devices_that_cannot_compute(name):
    with pytest.raises(ConfigError, match=f"device='{name}' cannot be computed on here; use 'cpu'"):
        resolve_device(name)


def test_the_number_of_threads_is_put_back():
    before = torch.get_num_threads()
    with thread_count(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
