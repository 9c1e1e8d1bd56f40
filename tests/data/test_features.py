import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from adgn.data.features import (
    SPARSE_UP_TO,
    as_stored,
    csr_from_scipy,
    csr_to_scipy,
    rows_sum_to_one,
    select_rows,
)


def matrix(rows, columns, density, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator)
    return values * (torch.rand(rows, columns, generator=generator) < density)


@given(st.integers(1, 8), st.integers(1, 8), st.floats(0, 1), st.integers(0, 1000), st.data())
def test_conversions_and_row_choice_keep_the_values(rows, columns, density, seed, data):
    dense = matrix(rows, columns, density, seed)
    sparse = csr_from_scipy(scipy.sparse.csr_matrix(dense.numpy()))
    assert sparse.layout == torch.sparse_csr
    assert torch.equal(sparse.to_dense(), dense)
    assert (csr_to_scipy(sparse).toarray() == dense.numpy()).all()
    chosen = torch.tensor(data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=5)))
    assert torch.equal(select_rows(sparse, chosen).to_dense(), dense[chosen])
    assert torch.equal(select_rows(dense, chosen), dense[chosen])


def test_the_rule_is_one_entry_in_eight():
    assert SPARSE_UP_TO == 1 / 8
    at_the_limit = torch.zeros(4, 8)
    at_the_limit[:, 0] = 1.0
    assert isinstance(as_stored(at_the_limit), scipy.sparse.csr_matrix)
    above = at_the_limit.clone()
    above[0, 1] = 1.0
    assert as_stored(above) is above
    assert isinstance(
        as_stored(scipy.sparse.csr_matrix(at_the_limit.numpy())), scipy.sparse.csr_matrix
    )
    assert torch.equal(as_stored(scipy.sparse.csr_matrix(above.numpy())), above)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_sum_to_one(sparse):
    dense = torch.tensor([[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    x = dense.to_sparse_csr() if sparse else dense
    normalized = rows_sum_to_one(x)
    assert normalized.layout == x.layout
    assert normalized.to_dense().sum(dim=1).tolist() == [1.0, 0.0, 1.0]
    assert normalized.to_dense()[0].tolist() == [0.25, 0.0, 0.75]
    assert torch.equal(x.to_dense(), dense)  # what was given stays
    with pytest.raises(ValueError, match="negative"):
        rows_sum_to_one(-x)
