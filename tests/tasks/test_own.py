import pytest
import torch

import adgn
from adgn.tasks.own import OwnData, in_memory_task
from adgn.training import TASKS
from adgn.training.models import estimate_memory


def data(**changes):
    torch.manual_seed(0)
    values = {
        "x": torch.randn(20, 3),
        "edge_index": torch.randint(0, 20, (2, 40)),
        "y": torch.tensor([0, 1] * 10),
        "parts": {"train": torch.arange(10), "val": torch.arange(10, 20)},
        "out_channels": 2,
    }
    return OwnData(**{**values, **changes})


def test_the_task_is_there_inside_only():
    with in_memory_task(data(), "classification") as name:
        assert name in TASKS
    assert name not in TASKS
    with pytest.raises(RuntimeError), in_memory_task(data(), "classification"):
        raise RuntimeError
    assert name not in TASKS


@pytest.mark.parametrize(
    "change",
    [
        {"x": torch.ones(20, 3)},
        {"y": torch.tensor([1, 0] * 10)},
        {"edge_weight": torch.ones(40)},
        {"weight": torch.ones(20)},
        {"parts": {"train": torch.arange(9), "val": torch.arange(9, 20)}},
        {"x": torch.ones(20, 3).to_sparse_csr()},
    ],
)
def test_other_data_have_another_name(change):
    assert data().digest == data().digest
    assert data(**change).digest != data().digest


def test_weights_of_rows_change_the_loss_and_equal_ones_do_not():
    def weights(**changes):
        with in_memory_task(data(**changes), "classification") as name:
            return adgn.train(name, loop={"max_epochs": 3}).model.state_dict()

    plain = weights()
    equal = weights(weight=torch.full((20,), 7.0))
    other = weights(weight=torch.tensor([1.0, 5.0] * 10))
    torch.testing.assert_close(plain, equal)
    assert any((plain[name] != other[name]).any() for name in plain)


def test_whole_graphs_train_in_batches_and_go_on_exactly(tmp_path):
    graphs = data(
        y=torch.tensor([0, 1, 0, 1]),
        edge_index=torch.tensor([[0, 6, 11, 16], [1, 7, 12, 17]]),
        parts={"train": torch.tensor([0, 1]), "val": torch.tensor([2, 3])},
        level="graph",
        node_ptr=torch.tensor([0, 5, 10, 15, 20]),
    )
    loop = {"batch_size": 1}
    with in_memory_task(graphs, "classification") as name:
        whole = adgn.train(name, loop={**loop, "max_epochs": 6}).model.state_dict()
        again = adgn.train(name, loop={**loop, "max_epochs": 6}, run_dir=tmp_path / "run")
    for key, value in whole.items():
        assert value.equal(again.model.state_dict()[key])


def test_memory_is_estimated_before_a_run():
    with in_memory_task(data(), "classification") as name:
        need = estimate_memory(adgn.TrainConfig(name))
        assert need is not None and need.total > 0
