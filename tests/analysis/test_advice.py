"""Advice is measured: whatever is proposed brings the growth into the stable range."""

import pytest
import torch

from adgn.analysis import Thresholds, perturbation_growth
from adgn.analysis.advice import advise, advise_reach
from adgn.analysis.graphs import example_graph
from adgn.analysis.sensitivity import sensitivity
from adgn.nn import ADGN, build_model

GRAPH = example_graph("grid", 12)


def advice_for(model, x, kind):
    start = model.encode(x).detach()
    growth = perturbation_growth(model, x, GRAPH)
    assert Thresholds().kind(growth.total) == kind
    return advise(model, start, GRAPH, None, kind, growth, None, Thresholds(), 0)


@pytest.mark.parametrize(
    ("options", "kind"),
    [({"epsilon": 1.0}, "exploding"), ({"gamma": 4.0, "epsilon": 0.2}, "dissipative")],
)
def test_each_proposal_keeps_its_promise(options, kind):
    torch.manual_seed(0)
    model, x = ADGN(3, 8, 1, num_layers=20, act=None, **options), torch.randn(12, 3)
    proposals = [a for a in advice_for(model, x, kind) if a.parameter in ("epsilon", "gamma")]
    assert proposals
    for proposal in proposals:
        value = float(proposal.text.split("=")[1].split(":")[0])
        changed = ADGN(3, 8, 1, 20, act=None, **{**options, proposal.parameter: value})
        changed.load_state_dict(model.state_dict())
        assert Thresholds().kind(perturbation_growth(changed, x, GRAPH).total) == "stable"


def test_the_model_itself_is_not_changed():
    torch.manual_seed(0)
    model, x = ADGN(3, 8, 1, num_layers=20, act=None, epsilon=1.0), torch.randn(12, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    advice_for(model, x, "exploding")
    assert model.propagation.layers[0].epsilon == 1.0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_network_that_hears_everything_gets_no_advice_about_reach():
    torch.manual_seed(0)
    model, x = ADGN(3, 8, 1, num_layers=4), torch.randn(12, 3)
    start = model.encode(x).detach()
    ring = example_graph("ring", 3)
    near = sensitivity(model, x[:3], ring, 0)
    assert near.by_distance().reach() == 1
    assert advise_reach(model, start[:3], ring, None, near, Thresholds(), 0) == []
    gcn = build_model("gcn", 3, 8, 1, num_layers=2)
    far = sensitivity(gcn, x, GRAPH, 0)
    assert advise_reach(gcn, start, GRAPH, None, far, Thresholds(), 0) == []


def test_growth_on_a_threshold_is_stable():
    assert Thresholds().kind(0.2) == "stable"
    assert Thresholds().kind(10.0) == "stable"
    assert Thresholds().kind(10.01) == "exploding"
    assert Thresholds().kind(0.199) == "dissipative"
