"""torch's CSR tensors: the right matrix, and no notice that they are in beta."""

import subprocess
import sys

import pytest
import torch

from adgn.graph.kernels import torch_csr

PARTS = torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), torch.tensor([1.0, 2.0, 3.0])


def test_is_the_matrix_of_its_parts():
    dense = torch_csr(*PARTS, (2, 3), check=True).to_dense()
    assert torch.equal(dense, torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))


def test_checks_on_demand():
    with pytest.raises(RuntimeError):
        torch_csr(*PARTS, (2, 2), check=True)


def test_a_new_process_hears_no_notice():
    # Once per process, so it takes a new one to hear it.
    code = (
        "import torch, warnings\n"
        "from adgn.graph.kernels import torch_csr\n"
        "warnings.simplefilter('error')\n"
        "torch_csr(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1), check=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
