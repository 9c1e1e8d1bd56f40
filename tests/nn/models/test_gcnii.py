import pytest
import torch_geometric.nn as pyg

from adgn.nn import build_model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.0])
def test_the_papers_setting_equals_a_pyg_network(assert_same_as_pyg, alpha, weighted):
    model = build_model("gcnii", 3, 4, 2, 3, alpha=alpha)
    convs = [pyg.GCN2Conv(4, alpha) for _ in range(3)]
    assert_same_as_pyg(model, convs, initial=True, weighted=weighted)


@pytest.mark.parametrize("shared_weights", [True, False])
def test_the_usual_setting_equals_a_pyg_network(assert_same_as_pyg, shared_weights):
    model = build_model("gcnii", 3, 4, 2, 3, theta=0.5, shared_weights=shared_weights, act="relu")
    convs = [pyg.GCN2Conv(4, 0.1, 0.5, layer, shared_weights) for layer in (1, 2, 3)]
    assert_same_as_pyg(model, convs, act=lambda x: x.relu(), initial=True)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_outside_the_unit_interval(alpha):
    with pytest.raises(ValueError, match=r"alpha=.* is not valid for gcnii.* gcnii takes: .*theta"):
        build_model("gcnii", 3, 4, 2, 3, alpha=alpha)
