"""What `conftest.py` sets for all tests is set."""

import gc
import os

import torch


def test_settings_of_all_tests():
    assert torch.sparse.check_sparse_tensor_invariants.is_enabled()
    assert gc.isenabled() and gc.get_freeze_count() > 0
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert torch.get_num_threads() == 1
