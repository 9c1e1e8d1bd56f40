"""Verdicts: three kinds of network are told apart, and the words carry the numbers."""

import pytest
import torch

from adgn.analysis import Thresholds, diagnose, perturbation_growth
from adgn.analysis.graphs import example_graph
from adgn.nn import ADGN, AntiSymmetricConv, build_model

GRAPH = example_graph("ring", 8)


def features(channels, seed=0):
    return torch.randn(8, channels, generator=torch.Generator().manual_seed(seed)).double()


def test_a_rotation_is_stable(make_linear_layer):
    conv = make_linear_layer([[0.0, 1.0], [0.0, 0.0]], 0.1 * torch.eye(2), num_iters=20)
    found = diagnose(conv, features(2), GRAPH)
    assert found.kind == "stable"
    assert found.text().startswith("Verdict: stable and non-dissipative.")


def test_strong_damping_is_dissipative_and_less_gamma_is_proposed(make_linear_layer):
    conv = make_linear_layer(
        [[0.0, 1.0], [0.0, 0.0]], torch.zeros(2, 2), epsilon=0.1, gamma=5.0, num_iters=20
    )
    found = diagnose(conv, features(2), GRAPH)
    assert found.kind == "dissipative"
    # (1 − εγ)² + ε² = 0.26 a step
    assert found.growth.total == pytest.approx(0.26**10, rel=1e-5)
    advice = {advice.parameter: advice.text for advice in found.advice}
    assert {"gamma", "epsilon", "num_layers"} <= set(advice)
    value = float(advice["gamma"].split("=")[1].split(":")[0])
    conv.gamma = value
    assert diagnose(conv, features(2), GRAPH).kind == "stable"


def test_strong_neighbours_explode_and_a_smaller_step_is_proposed(make_linear_layer):
    conv = make_linear_layer(
        [[0.0, 1.0], [0.0, 0.0]], torch.eye(2), epsilon=0.5, gamma=0.1, num_iters=20
    )
    found = diagnose(conv, features(2), GRAPH)
    assert found.kind == "exploding"
    # The ring's largest eigenvalue is 2: |1 + 0.5(2 − 0.1 ± i)| = 2.01 is the fastest mode.
    assert found.layer_spectrum.spectral_radius == pytest.approx(abs(1 + 0.5 * (1.9 + 1j)))
    advice = {advice.parameter: advice.text for advice in found.advice}
    assert "epsilon" in advice
    conv.epsilon = float(advice["epsilon"].split("=")[1].split(":")[0])
    assert diagnose(conv, features(2), GRAPH).kind == "stable"


def test_depth_advice_names_the_last_good_layer(make_linear_layer):
    conv = make_linear_layer(
        [[0.0, 1.0], [0.0, 0.0]], torch.zeros(2, 2), epsilon=0.1, gamma=5.0, num_iters=20
    )
    found = diagnose(conv, features(2), GRAPH)
    # 0.26^(ℓ/2) stays at 0.2 or above up to ℓ = 2.
    assert [a.text[:13] for a in found.advice if a.parameter == "num_layers"] == ["num_layers=2:"]


def test_overflow_is_an_explosion_and_not_a_crash():
    conv = AntiSymmetricConv(4, phi="sum", num_iters=40, epsilon=1.0, act=None).double()
    with torch.no_grad():
        conv.phi.lin.weight.fill_(1e10)
    found = diagnose(conv, features(4), GRAPH)
    assert found.kind == "exploding" and found.growth is None
    assert "until the states overflow" in found.text()
    assert any("overflow" in note for note in found.notes)
    assert found.node_spectrum is not None


@pytest.mark.parametrize(("name", "number"), [("ggcn", 2), ("h2gcn", None)])
def test_states_that_change_their_size(name, number):
    torch.manual_seed(0)
    model = build_model(name, 3, 4, 2, num_layers=3).double()
    found = diagnose(model, features(3), GRAPH)
    assert found.growth is not None
    assert (found.layer_spectrum is None) == (number is None)
    expected = "no layer keeps the size" if number is None else f"those of layer {number}, the"
    assert any(expected in note for note in found.notes)


def test_a_20_layer_gcn_forgets_where_the_anti_symmetric_network_does_not():
    torch.manual_seed(0)
    x, graph = torch.randn(25, 8), example_graph("random", 25)
    gcn = diagnose(build_model("gcn", 8, 16, 1, num_layers=20), x, graph)
    adgn = diagnose(ADGN(8, 16, 1, num_layers=20), x, graph)
    assert (gcn.kind, adgn.kind) == ("dissipative", "stable")
    assert gcn.node_spectrum is None and "own Jacobian" not in gcn.text()
    assert "model='adgn'" in gcn.text()


def test_a_network_through_which_nothing_comes_forgets_and_says_so():
    torch.manual_seed(0)
    x = torch.randn(6, 8)
    found = diagnose(
        build_model("gcn", 8, 8, 1, num_layers=100, act="relu"), x, example_graph("line", 6)
    )
    assert found.kind == "dissipative" and found.growth.total == 0
    assert found.sensitivity.norms.tolist() == [0] * 6
    assert found.sensitivity.by_distance().reach() == 0
    text = found.text()
    assert text.startswith("Verdict: dissipative.")
    assert "Sensitivity of node 0: 0 to itself and to all others; nothing of the first" in text
    assert "at the first states 0 times its norm at the last" in text
    assert "model='adgn'" in text


def test_a_loss_without_a_gradient_is_not_a_number_that_is_none():
    torch.manual_seed(0)
    model = ADGN(4, 8, 1, num_layers=3)
    found = diagnose(model, torch.randn(8, 4), GRAPH, loss=lambda output: 0 * output.sum())
    assert found.kind == "stable" and found.gradients.ratio == 0
    assert "Gradient: 0 at the states of all layers" in found.text()


def test_a_node_that_hears_others_but_not_itself(make_linear_layer):
    # One step x ← x + ε(−γ x + A x) with εγ = 1 forgets its own state.
    conv = make_linear_layer(torch.zeros(2, 2), torch.eye(2), epsilon=0.5, gamma=2.0, num_iters=1)
    found = diagnose(conv, features(2), GRAPH)
    assert "0 to itself, 0.707 at distance 1; at least 1 %" in found.text()
    assert found.sensitivity.by_distance().reach() == 1


def test_the_words_carry_what_was_measured():
    torch.manual_seed(0)
    model = ADGN(8, 4, 1, num_layers=6, phi="gcn", gamma=0.3)
    x, graph = torch.randn(9, 8), example_graph("line", 9)
    found = diagnose(model, x, graph, node=2)
    text = found.text()
    growth = perturbation_growth(model, x, graph)
    assert f"grows {growth.total:.3g}-fold over 6 layers" in text
    assert f"{found.gradients.ratio:.3g} times" in text
    assert f"Bauer-Fike radius at most {float(found.node_spectrum.radius.max()):.3g}" in text
    assert f"spectral radius {found.layer_spectrum.spectral_radius:.4g}" in text
    assert "Sensitivity of node 2" in text and "up to distance" in text


def test_a_stable_network_that_hears_little_is_told_to_step_farther():
    torch.manual_seed(0)
    model = ADGN(4, 8, 1, num_layers=20, epsilon=0.01)
    found = diagnose(model, torch.randn(20, 4), example_graph("line", 20))
    assert found.kind == "stable"
    (advice,) = [a for a in found.advice if a.parameter == "epsilon"]
    assert "to reach farther" in advice.text
    before = found.sensitivity.by_distance().reach()
    value = float(advice.text.split("=")[1].split(" ")[0])
    for conv in model.propagation.layers:
        conv.epsilon = value
    after = diagnose(model, torch.randn(20, 4), example_graph("line", 20))
    assert after.sensitivity.by_distance().reach() > before


def test_an_activation_outside_the_theory_is_pointed_out():
    torch.manual_seed(0)
    found = diagnose(ADGN(4, 8, 1, num_layers=3, act="gelu"), torch.randn(8, 4), GRAPH)
    assert any(a.parameter == "act" and "monotonically" in a.text for a in found.advice)


def test_on_a_large_graph_the_eigenvalues_are_left_out_and_that_is_said(monkeypatch):
    monkeypatch.setattr("adgn.analysis.verdict.SPECTRUM_LIMIT", 10)
    torch.manual_seed(0)
    found = diagnose(ADGN(4, 8, 1, num_layers=3), torch.randn(8, 4), GRAPH)
    assert found.layer_spectrum is None and found.growth is not None
    assert "Note: the whole layer's eigenvalues were not looked for: with 64 states" in found.text()


def test_thresholds_are_the_callers():
    torch.manual_seed(0)
    model = ADGN(4, 8, 1, num_layers=3)
    strict = Thresholds(dissipative=1e-9, exploding=1e-8)
    assert diagnose(model, torch.randn(8, 4), GRAPH, thresholds=strict).kind == "exploding"
    with pytest.raises(ValueError, match="in this order"):
        Thresholds(dissipative=2, exploding=1)


def test_graph_level_models_need_their_batch():
    model = ADGN(4, 8, 1, num_layers=3, level="graph")
    with pytest.raises(ValueError, match="batch=None"):
        diagnose(model, torch.randn(8, 4), GRAPH)
    batch = torch.zeros(8, dtype=torch.long)
    assert diagnose(model, torch.randn(8, 4), GRAPH, batch=batch).gradients is not None


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("sonar", {}, ["the MLP after the steps", "layers also pass on a velocity"]),
        ("sonar", {"block_mlp": None}, ["layers also pass on a velocity"]),
        ("phdgn", {}, ["layers also pass on positions"]),
        ("phdgn", {"start": "split"}, []),
        ("graphcon", {}, ["layers also pass on a velocity"]),
        ("pdegcn", {}, ["layers also pass on the states before"]),
        ("pdegcn", {"equation": "parabolic"}, []),
        ("adgn", {"blocks": 2, "block_mlp": "tanh"}, ["the MLP after the steps"]),
        ("adgn", {}, []),
    ],
)
def test_what_counts_with_a_layer_is_noted(model, options, words):
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    network = build_model(model, 2, 4, 1, num_layers=2, **options)
    notes = diagnose(network, torch.rand(3, 2), path).notes
    assert len(notes) == len(words)
    assert all(note.startswith(word) for note, word in zip(notes, words, strict=True))
