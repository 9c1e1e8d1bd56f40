"""All measurements of one model on one graph, and what they say in words."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from adgn.analysis.advice import Advice, Kind, Thresholds, advise, advise_reach
from adgn.analysis.energy import EnergyByLayer, energy_by_layer
from adgn.analysis.gradients import GradientNorms, gradient_norms
from adgn.analysis.layer_spectra import LayerSpectrum, NotConvergedError, layer_spectrum
from adgn.analysis.node_spectra import NodeSpectrum, is_antisymmetric, node_spectrum
from adgn.analysis.perturbation import PerturbationGrowth, perturbation_growth
from adgn.analysis.sensitivity import Sensitivity, sensitivity
from adgn.analysis.states import first_states, layer_states, measuring, propagation_of
from adgn.graph import Adjacency
from adgn.training.errors import DivergedError

# Nodes × channels up to which a diagnosis looks for the whole layer's extreme eigenvalues.
SPECTRUM_LIMIT = 200_000


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What was measured, and the verdict. Fields are `None` where states overflow or the
    measurement does not apply (`node_spectrum`: the model is not anti-symmetric).

    Attributes:
        kind: `"stable"`, `"dissipative"` or `"exploding"`.
        num_nodes: The graph's nodes.
        growth: Growth of a perturbation by layer; its total decides the verdict.
        gradients: Gradient norm by layer.
        energy: Dirichlet energy by layer.
        sensitivity: Sensitivity of one node to all nodes.
        node_spectrum: The paper's Jacobians.
        layer_spectrum: The Jacobian of the whole first layer that keeps the size of its states;
            `None` on large graphs too.
        advice: What to change.
        notes: What could not be measured, or not exactly, and why.
        thresholds: Where the verdict turns.
    """

    kind: Kind
    num_nodes: int
    growth: PerturbationGrowth | None
    gradients: GradientNorms | None
    energy: EnergyByLayer | None
    sensitivity: Sensitivity | None
    node_spectrum: NodeSpectrum | None
    layer_spectrum: LayerSpectrum | None
    advice: tuple[Advice, ...]
    notes: tuple[str, ...]
    thresholds: Thresholds

    def text(self) -> str:
        """The verdict in words with numbers, one finding per line."""
        lines = [_HEADLINES[self.kind], _growth_line(self.growth, self.thresholds)]
        lines += [] if self.gradients is None else [_gradient_line(self.gradients)]
        lines += [] if self.sensitivity is None else [_sensitivity_line(self.sensitivity)]
        lines += [] if self.energy is None else [_energy_line(self.energy)]
        lines += [] if self.node_spectrum is None else _node_lines(self.node_spectrum)
        lines += [] if self.layer_spectrum is None else [_layer_line(self.layer_spectrum)]
        lines += [f"Note: {note}" for note in self.notes]
        if self.advice:
            lines.append("What to change:")
            lines += [f"  - {advice.text}" for advice in self.advice]
        elif self.kind == "stable":
            lines.append("What to change: nothing.")
        return "\n".join(lines)


def diagnose(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    *,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    loss: Callable[[Tensor], Tensor] | None = None,
    node: int = 0,
    probes: int | None = None,
    thresholds: Thresholds | None = None,
    seed: int = 0,
) -> Diagnosis:
    r"""Whether a model is stable and non-dissipative on a graph, and what to change if not.

    The verdict is the growth $g(L)$ of a random perturbation of the first states over all layers
    ([`perturbation_growth`][adgn.analysis.perturbation_growth]): above 10 the network is called
    exploding, below 0.2 dissipative, and stable and non-dissipative in between. Proposals to change
    $\epsilon$ or $\gamma$ are measured on a copy of the model before they are made.

    Args:
        model: A `GraphNetwork`, or a propagation.
        x: Features, `[N, in_channels]`.
        edge_index: The graph.
        edge_weight: `[E]`, optional.
        batch: `[N]`; needed by a model at graph level.
        loss: For the gradient norms, see [`gradient_norms`][adgn.analysis.gradient_norms].
        node: The node whose sensitivity is measured.
        probes: As in [`sensitivity`][adgn.analysis.sensitivity].
        thresholds: Other places where the verdict turns.
        seed: For all random draws.

    Example:
        >>> import torch
        >>> from adgn.nn import ADGN
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> diagnose(ADGN(4, 8, 1, num_layers=20), torch.eye(3, 4), path).kind
        'stable'
    """
    thresholds = Thresholds() if thresholds is None else thresholds
    with measuring(model):
        start = first_states(model, x)
    spectrum = None
    if is_antisymmetric(propagation_of(model)):
        spectrum = node_spectrum(model, x, edge_index, edge_weight=edge_weight, seed=seed)
    notes = _what_layers_are(propagation_of(model))
    growth = gradients = energy = reach = layer = None
    kind: Kind = "exploding"
    try:
        growth = perturbation_growth(model, x, edge_index, edge_weight=edge_weight, seed=seed)
        kind = thresholds.kind(growth.total)
        gradients = gradient_norms(model, x, edge_index, loss, edge_weight=edge_weight, batch=batch)
        energy = energy_by_layer(model, x, edge_index, edge_weight=edge_weight)
        reach = sensitivity(
            model, x, edge_index, node, edge_weight=edge_weight, probes=probes, seed=seed
        )
        if start.numel() > SPECTRUM_LIMIT:
            notes.append(
                f"the whole layer's eigenvalues were not looked for: with {start.numel():,} states "
                "that takes minutes; layer_spectrum does it"
            )
        elif (number := _layer_of_one_size(model, x, edge_index, edge_weight)) is None:
            notes.append("no layer keeps the size of its states: there are no eigenvalues of one")
        else:
            layer = layer_spectrum(
                model,
                x,
                edge_index,
                edge_weight=edge_weight,
                layer=number,
                count=2,
                tolerance=1e-3,
                seed=seed,
            )
            if number > 1:
                notes.append(f"eigenvalues are those of layer {number}, the first of one size")
            if layer.note:
                notes.append(layer.note)
    except (DivergedError, NotConvergedError) as error:  # what was measured before stands
        notes.append(str(error))
    advice = advise(model, start, edge_index, edge_weight, kind, growth, spectrum, thresholds, seed)
    if kind == "stable" and reach is not None:
        advice += advise_reach(model, start, edge_index, edge_weight, reach, thresholds, seed)
    measured = (growth, gradients, energy, reach, spectrum, layer)
    return Diagnosis(kind, start.size(0), *measured, tuple(advice), tuple(notes), thresholds)


def _layer_of_one_size(
    model: nn.Module, x: Tensor, edge_index: Adjacency, edge_weight: Tensor | None
) -> int | None:
    """The first layer whose states before and after have one size, from 1."""
    sizes = [state.size(-1) for state in layer_states(model, x, edge_index, edge_weight)]
    pairs = enumerate(pairwise(sizes), start=1)
    return next((number for number, (before, after) in pairs if before == after), None)


def _what_layers_are(propagation: nn.Module) -> list[str]:
    """What a reader must know of the layers to read the numbers right."""
    notes = []
    blocks = getattr(propagation, "blocks", ())
    if any(getattr(block, "mlp", None) is not None for block in blocks):
        notes.append(
            "the MLP after the steps of a block counts with its last layer; block_mlp=None shows "
            "the steps alone"
        )
    steps = [propagation, *(getattr(block, "steps", None) for block in blocks)]
    carried = {name for part in steps if (name := getattr(part, "carries", ""))}
    notes += [
        f"layers also pass on {name}, which the spectrum of a layer leaves out: it is that of the "
        "states alone, from the first layer"
        for name in sorted(carried)
    ]
    return notes


_HEADLINES: dict[Kind, str] = {
    "stable": "Verdict: stable and non-dissipative.",
    "dissipative": "Verdict: dissipative. The network forgets its input.",
    "exploding": "Verdict: exploding. The network amplifies its input and any noise in it.",
}


def _growth_line(growth: PerturbationGrowth | None, thresholds: Thresholds) -> str:
    if growth is None:
        return "Perturbation: grows until the states overflow."
    return (
        f"Perturbation: grows {growth.total:.3g}-fold over {growth.growth.size(1) - 1} layers "
        f"({growth.per_layer:.4g} per layer; below {thresholds.dissipative:g} is dissipative, "
        f"above {thresholds.exploding:g} exploding)."
    )


def _gradient_line(gradients: GradientNorms) -> str:
    if not bool(gradients.norms.any()):
        return "Gradient: 0 at the states of all layers, the last among them."
    return f"Gradient: at the first states {gradients.ratio:.3g} times its norm at the last."


def _sensitivity_line(reach: Sensitivity) -> str:
    profile = reach.by_distance()
    far = profile.distance.numel() - 1
    how = "" if reach.probes is None else f" (estimated with {reach.probes} probes)"
    line = f"Sensitivity of node {reach.node}{how}: {float(profile.mean[0]):.3g} to itself"
    if not bool(profile.mean.any()):
        line = f"Sensitivity of node {reach.node}{how}: 0 to itself and to all others; nothing of "
        line += "the first states arrives at its last"
    elif far > 0:
        felt = int((profile.mean > 0).nonzero().max())
        for at in (1, felt) if felt > 1 else (1,):
            line += f", {float(profile.mean[at]):.3g} at distance {int(profile.distance[at])}"
        line += (
            f"; at least 1 % of its largest value up to distance {profile.reach()} of "
            f"{int(profile.distance[far])}"
        )
    return line + "."


def _energy_line(energy: EnergyByLayer) -> str:
    first, last = float(energy.relative[0]), float(energy.relative[-1])
    return f"Dirichlet energy, relative to the states: {first:.3g} at first, {last:.3g} at last."


def _node_lines(spectrum: NodeSpectrum) -> list[str]:
    real = spectrum.eigenvalues.real
    jacobian = (
        f"A node's own Jacobian ({spectrum.nodes.numel()} nodes): real parts from "
        f"{float(real.min()):.3g} to {float(real.max()):.3g}, imaginary parts up to "
        f"{float(spectrum.eigenvalues.imag.max()):.3g}; Bauer-Fike radius at most "
        f"{float(spectrum.radius.max()):.3g} (the paper's bound: "
        f"{float(spectrum.bound.max()):.3g})."
    )
    name = spectrum.integrator.name
    growth = "Euler step: |1 + ελ|" if name == "euler" else f"Step of {name}: growth"
    line = f"{growth} at most {spectrum.amplification:.4g} for ε = {spectrum.epsilon:g}"
    step, gamma = spectrum.largest_stable_step, spectrum.suggest_gamma()
    if spectrum.amplification > 1 + 1e-9:
        line += f"; at most 1 needs ε ≤ {step:.3g}" if step > 1e-6 else "; no ε makes it 1"
        if gamma is not None:
            line += f", or γ ≥ {gamma:.3g} in place of {spectrum.gamma:g}"
    else:
        line += f", stable up to ε = {step:.3g}"
    return [jacobian, line + "."]


def _layer_line(spectrum: LayerSpectrum) -> str:
    return (
        f"Layer {spectrum.layer} over the whole graph ({spectrum.method}, size {spectrum.size}): "
        f"spectral radius {spectrum.spectral_radius:.4g}, real parts from "
        f"{spectrum.min_real:.4g} to {spectrum.max_real:.4g}."
    )
