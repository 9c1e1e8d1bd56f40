"""Settings for every test, the examples in docstrings and documents included."""

import torch

torch.sparse.check_sparse_tensor_invariants.enable()
