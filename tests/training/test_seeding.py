import random

import numpy as np
import pytest
import torch

from adgn.training.seeding import (
    derived_seed,
    own_randomness,
    random_state,
    restore_random_state,
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
