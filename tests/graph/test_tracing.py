import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from adgn.graph.checks import is_compiled, is_traced


def test_real_and_meta_and_fake_tensors():
    assert not is_traced(torch.zeros(2))
    assert is_traced(torch.zeros(2, device="meta"))
    assert is_traced(FakeTensorMode().from_tensor(torch.zeros(2)))
    assert not is_compiled()


class Seen(torch.nn.Module):
    def forward(self, x):
        return x + 2 * is_traced(x) + 4 * is_compiled()


@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
def test_what_records():
    zero = torch.zeros(1)
    assert Seen()(zero).item() == 0
    assert torch.compile(Seen(), backend="eager", fullgraph=True)(zero).item() == 6
    assert torch.export.export(Seen(), (zero,)).module()(zero).item() == 2
    assert torch.jit.trace(Seen(), (zero,), check_trace=False)(zero).item() == 2
