import pytest
import torch

from adgn.training.devices import resolve_device, thread_count
from adgn.training.errors import ConfigError


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
