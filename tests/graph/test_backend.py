import itertools
import logging
import sys

import pytest
import torch

from adgn.graph import backend, graph_operator, multiply_reference, set_backend
from adgn.graph.backend import VARIABLE, native_library, setting
from adgn.graph.native.library import NativeLibrary

module = sys.modules[backend.__module__]


@pytest.fixture
def nothing_set(monkeypatch):
    monkeypatch.setattr(module, "_setting", None)
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def not_built(nothing_set, monkeypatch):
    monkeypatch.setattr(module, "load_library", lambda: "nothing was built")
    monkeypatch.setattr(module, "_times_missing", itertools.count())


def test_native_serves_where_it_can(native, nothing_set):
    with set_backend("auto"):
        served = backend()
    assert (served.name, served.reason) == ("native", "")
    assert served.instruction_set in ("baseline", "avx2", "avx512")
    assert served.threads == torch.get_num_threads()


def test_the_environment_chooses(nothing_set, monkeypatch):
    assert setting() == "auto"
    monkeypatch.setenv(VARIABLE, "torch")
    assert backend().name == "torch"
    assert "ADGN_BACKEND" in backend().reason
    assert native_library() is None


def test_set_backend_wins_over_the_environment_and_ends(nothing_set, monkeypatch):
    monkeypatch.setenv(VARIABLE, "auto")
    with set_backend("torch"):
        assert setting() == "torch"
        with set_backend("auto"):
            assert setting() == "auto"
        assert setting() == "torch"
    assert setting() == "auto"
    set_backend("torch")
    assert setting() == "torch"


def test_set_backend_ends_with_an_error_too(nothing_set):
    with pytest.raises(KeyError), set_backend("torch"):
        raise KeyError
    assert setting() == "auto"


def test_unknown_names_are_told(nothing_set, monkeypatch):
    with pytest.raises(ValueError, match=r"setting='nativ' is not known. Did you mean 'native'"):
        set_backend("nativ")
    monkeypatch.setenv(VARIABLE, "torsh")
    with pytest.raises(ValueError, match=r"ADGN_BACKEND='torsh' is not known.*'torch'"):
        backend()


def test_without_kernels_torch_serves_and_says_so_once(not_built, caplog):
    edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
    with caplog.at_level(logging.WARNING, logger="adgn"):
        operator = graph_operator(edges, num_nodes=3)
        x = torch.randn(3, 4)
        torch.testing.assert_close(operator @ x, multiply_reference(operator, x))
    told = [record.getMessage() for record in caplog.records if record.name == "adgn"]
    assert told == ["torch does the work, more slowly: nothing was built"]
    assert (backend().name, backend().reason) == ("torch", "nothing was built")


def test_without_kernels_native_cannot_be_forced(not_built, monkeypatch):
    with pytest.raises(RuntimeError, match="nothing was built; or use 'auto' or 'torch'"):
        set_backend("native")
    assert setting() == "auto"
    monkeypatch.setenv(VARIABLE, "native")
    with pytest.raises(RuntimeError, match="ADGN_BACKEND=native: nothing was built"):
        native_library()


def test_torch_is_chosen_silently(not_built, caplog):
    with set_backend("torch"), caplog.at_level(logging.WARNING, logger="adgn"):
        assert native_library() is None
    assert not caplog.records


def test_native_library_is_the_library(native):
    assert isinstance(native_library(), NativeLibrary)
