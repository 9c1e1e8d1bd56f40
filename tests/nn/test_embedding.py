import pytest
import torch

from adgn.nn import ADGN, IntegerEmbedding


def test_embeddings_of_all_columns_are_added():
    layer = IntegerEmbedding([5, 3], 4)
    x = torch.tensor([[4, 2], [0, 0]], dtype=torch.int32)
    keys, values = layer.tables
    torch.testing.assert_close(layer(x), keys.weight[[4, 0]] + values.weight[[2, 0]])


def test_network_takes_it_as_encoder():
    network = ADGN(2, 4, 3, num_layers=2, readout="linear_no_bias")
    network.encoder = IntegerEmbedding([5, 3], 4)
    edges = torch.tensor([[0, 1], [1, 0]])
    assert network(torch.tensor([[4, 2], [0, 0]]), edges).shape == (2, 3)
    assert network.parameter_counts()["encoder"] == 8 * 4
    assert network.readout.bias is None


def test_new_weights_are_drawn():
    layer = IntegerEmbedding([5], 4)
    before = layer.tables[0].weight.detach().clone()
    layer.reset_parameters()
    assert not torch.equal(before, layer.tables[0].weight)


@pytest.mark.parametrize("x", [torch.ones(2, 2), torch.ones(2, 3).long(), torch.ones(2).long()])
def test_wrong_features_are_refused(x):
    with pytest.raises(ValueError, match=r"needs integers \[num_nodes, 2\]"):
        IntegerEmbedding([5, 3], 4)(x)


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match="sizes is empty"):
        IntegerEmbedding([], 4)
    with pytest.raises(ValueError, match="sizes=0"):
        IntegerEmbedding([5, 0], 4)
