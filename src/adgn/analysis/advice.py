"""Which hyper-parameter to change, each proposal measured before it is made."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from adgn.analysis.node_spectra import NodeSpectrum, antisymmetric_layers, is_antisymmetric
from adgn.analysis.perturbation import PerturbationGrowth, perturbation_growth
from adgn.analysis.sensitivity import Sensitivity, sensitivity
from adgn.analysis.states import propagation_of
from adgn.graph import Adjacency
from adgn.training.errors import DivergedError

Kind = Literal["stable", "dissipative", "exploding"]

_HALVINGS = 6
_LARGEST_STEP = 1.0


@dataclass(frozen=True)
class Thresholds:
    """Where the verdict turns, as growth of a random perturbation over all layers.

    Attributes:
        dissipative: Below this growth the network forgets: most of what was put in is gone.
        exploding: Above this growth it amplifies input and noise alike.
    """

    dissipative: float = 0.2
    exploding: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.dissipative < self.exploding < float("inf"):
            raise ValueError(
                f"Thresholds(dissipative={self.dissipative!r}, exploding={self.exploding!r}) are "
                "not valid; they must be above 0, finite and in this order"
            )

    def kind(self, growth: float) -> Kind:
        """The verdict for a growth over all layers.

        Example:
            >>> Thresholds().kind(1.3), Thresholds().kind(1e-4)
            ('stable', 'dissipative')
        """
        if growth > self.exploding:
            return "exploding"
        return "dissipative" if growth < self.dissipative else "stable"


@dataclass(frozen=True)
class Advice:
    """One change that was measured to help, or that the theory asks for.

    Attributes:
        parameter: `"epsilon"`, `"gamma"`, `"num_layers"`, `"act"` or `"model"`.
        text: What to do and what was measured.
    """

    parameter: str
    text: str


def advise(
    model: nn.Module,
    start: Tensor,
    edge_index: Adjacency,
    edge_weight: Tensor | None,
    kind: Kind,
    growth: PerturbationGrowth | None,
    spectrum: NodeSpectrum | None,
    thresholds: Thresholds,
    seed: int,
) -> list[Advice]:
    """Proposals for a model that is not stable, and for an activation outside the theory.

    `start` are the first states `[N, d]`; `growth` is `None` where they overflow.
    """
    advice = list(_about_activation(spectrum, kind))
    if kind == "stable":
        return advice
    propagation = propagation_of(model)
    if is_antisymmetric(propagation):
        for name, value in _candidates(propagation, kind):
            changed = _changed(propagation, name, value)
            total = _growth_of(changed, start, edge_index, edge_weight, seed)
            if thresholds.kind(total) == "stable" and name not in {a.parameter for a in advice}:
                text = f"{name}={value:.3g}: a perturbation then grows {total:.3g}-fold"
                advice.append(Advice(name, text))
    if growth is not None:
        advice.extend(_about_depth(growth, thresholds))
    if not is_antisymmetric(propagation) and kind == "dissipative":
        text = "model='adgn' on the same graph: its layers have no such loss built in"
        advice.append(Advice("model", text))
    if not advice:
        text = (
            "no single change of epsilon or gamma was found to help; the aggregation outweighs the "
            "anti-symmetric part: use phi='gcn', or train with a smaller learning rate or more "
            "weight decay to keep V small"
        )
        advice.append(Advice("model", text))
    return advice


def _candidates(propagation: nn.Module, kind: Kind) -> Iterator[tuple[str, float]]:
    conv = antisymmetric_layers(propagation)[0]
    for power in range(1, _HALVINGS + 1):
        yield "epsilon", conv.epsilon / 2**power
    if kind == "dissipative":
        for power in range(1, _HALVINGS):
            yield "gamma", conv.gamma / 2**power
        yield "gamma", 0.0
    else:
        first = max(conv.gamma, 0.05)
        for power in range(1, _HALVINGS + 1):
            gamma = first * 2**power
            if gamma < 1 / conv.epsilon:  # beyond it damping alone overshoots
                yield "gamma", gamma


def _changed(propagation: nn.Module, name: str, value: float) -> nn.Module:
    changed = copy.deepcopy(propagation)
    for conv in antisymmetric_layers(changed):
        setattr(conv, name, value)
    return changed


def _growth_of(
    changed: nn.Module, start: Tensor, edge_index: Adjacency, edge_weight: Tensor | None, seed: int
) -> float:
    """The growth of a perturbation, infinite where the states overflow."""
    try:
        return perturbation_growth(
            changed, start, edge_index, edge_weight=edge_weight, trials=4, seed=seed
        ).total
    except DivergedError:
        return float("inf")


def advise_reach(
    model: nn.Module,
    start: Tensor,
    edge_index: Adjacency,
    edge_weight: Tensor | None,
    measured: Sensitivity,
    thresholds: Thresholds,
    seed: int,
) -> list[Advice]:
    """Proposals for a network that is stable but does not reach the whole graph.

    A signal passes one edge per layer, and each edge costs a factor of about ε: more layers than
    the distance, and a larger step, are what brings it farther.
    """
    propagation = propagation_of(model)
    profile = measured.by_distance()
    reach, far = profile.reach(), int(profile.distance.max())
    if reach >= far or not is_antisymmetric(propagation):
        return []
    best: Advice | None = None
    epsilon = 2 * antisymmetric_layers(propagation)[0].epsilon
    while epsilon <= _LARGEST_STEP and reach < far:
        changed = _changed(propagation, "epsilon", epsilon)
        growth = _growth_of(changed, start, edge_index, edge_weight, seed)
        if thresholds.kind(growth) != "stable":
            break
        new = sensitivity(
            changed, start, edge_index, measured.node, edge_weight=edge_weight, probes=4, seed=seed
        )
        if new.by_distance().reach() > reach:
            reach = new.by_distance().reach()
            text = (
                f"epsilon={epsilon:.3g} to reach farther: node {measured.node} then depends on "
                f"nodes up to distance {reach}, and a perturbation grows {growth:.3g}-fold"
            )
            best = Advice("epsilon", text)
        epsilon *= 2
    if best is not None:
        return [best]
    layers = len(antisymmetric_layers(propagation))
    if layers >= far:
        return []
    text = (
        f"num_layers={far} or more to reach all nodes: the farthest is at distance {far}, and "
        f"{layers} layers reach {layers} hops at most"
    )
    return [Advice("num_layers", text)]


def _about_depth(growth: PerturbationGrowth, thresholds: Thresholds) -> Iterator[Advice]:
    curve = growth.by_layer.tolist()
    good = 0
    while good + 1 < len(curve) and thresholds.kind(curve[good + 1]) == "stable":
        good += 1
    if good:
        text = f"num_layers={good}: up to there a perturbation grows {curve[good]:.3g}-fold"
        yield Advice("num_layers", text)


def _about_activation(spectrum: NodeSpectrum | None, kind: Kind) -> Iterator[Advice]:
    if spectrum is None:
        return
    if not spectrum.is_monotone:
        text = (
            f"act with slopes down to {float(spectrum.slopes.min()):.3g} is not monotonically "
            "non-decreasing, which the theory needs: use 'tanh' or 'relu'"
        )
        yield Advice("act", text)
    elif kind == "dissipative" and (slope := float(spectrum.slopes.mean())) < 0.05:
        text = f"the activation is flat here (mean slope {slope:.2g}): "
        yield Advice("act", text + "scale the features down, or use act='relu'")
