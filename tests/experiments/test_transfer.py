"""Does a signal cross the line, and does the gradient come back all the way?"""

import pytest
from torch import nn

from adgn.analysis import weight_gradients
from adgn.data import GraphTransfer
from adgn.experiments.transfer import run_transfer
from adgn.training import Callback, train


class FirstAgainstLast(Callback):
    """After each step, the gradient in the first layer's weights over that in the last's."""

    def __init__(self) -> None:
        self.ratios: list[float] = []
        self.lines = GraphTransfer("line", 10, "test", num_graphs=5).packed.batch()

    def on_step(self, trainer) -> None:
        def loss(output):
            return nn.functional.mse_loss(output[self.lines.mask], self.lines.y)

        measured = weight_gradients(trainer.model, self.lines.x, self.lines.edge_index, loss)
        self.ratios.append(measured.ratio)


def ratios_while_training(model: str, **options) -> list[float]:
    """64 layers on a line of 10 edges, two passes over 200 lines."""
    callback = FirstAgainstLast()
    train(
        "graph-transfer",
        task={"distance": 10, "train": 200, "val": 10, "test": 10},
        model={"name": model, "num_layers": 64, **options},
        loop={"max_epochs": 2, "batch_size": 20},
        callbacks=[callback],
    )
    assert len(callback.ratios) == 20
    return callback.ratios


def test_gradients_reach_the_first_of_64_layers_of_adgn():
    ratios = ratios_while_training("adgn", epsilon=0.1)
    assert min(ratios) > 0.1
    assert max(ratios) < 10


def test_gradients_do_not_reach_the_first_of_64_layers_of_a_gcn():
    assert min(ratios_while_training("gcn")) < 0.1


def test_adgn_sends_a_number_farther_than_a_gcn():
    adgn, gcn = run_transfer([10], ["adgn", "gcn"], epochs=6)
    assert adgn.solved
    assert adgn.error < 0.01
    assert not gcn.solved
    assert adgn.num_layers == gcn.num_layers == len(adgn.gradient) == 13
    assert adgn.constant == pytest.approx(1 / 3, rel=0.2)
