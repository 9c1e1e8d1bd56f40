"""Spectrum of the right-hand side in a node's own state: the matrices of the paper's proofs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from adgn.analysis.stability import TOLERANCE, amplification, largest_stable_step
from adgn.analysis.states import check_layer, check_node, in_double, measuring, states_from
from adgn.graph import Adjacency, Operator
from adgn.graph.checks import check_count
from adgn.nn import AntiSymmetricConv, LinearAggregation
from adgn.nn.integrators import Adaptive, Integrator

MAX_NODES = 256


@dataclass(frozen=True, eq=False)
class NodeSpectrum:
    r"""Eigenvalues of $\mathbf{J}_u = \mathrm{diag}(\sigma')(\mathbf{W} - \mathbf{W}^\top
    - \gamma\mathbf{I} + \mathbf{C}_u)$ for some nodes $u$ at one layer.

    Attributes:
        layer: The layer, counted from 1.
        nodes: `[n]`; the nodes.
        eigenvalues: `[n, d]`, complex.
        jacobians: `[n, d, d]`; the matrices themselves.
        slopes: `[n, d]`; $\sigma'$ at each node's pre-activation.
        radius: `[n]`; the Bauer-Fike radius $\|\mathbf{S}^{1/2} (\mathbf{C}_u - \gamma\mathbf{I})
            \mathbf{S}^{1/2}\|_2$, $\mathbf{S} = \mathrm{diag}(\sigma')$: no eigenvalue
            is farther from the imaginary axis. NaN where a slope is negative.
        bound: `[n]`; what the paper bounds it by, $\max\sigma' (\|\mathbf{C}_u\|_2 + \gamma)$;
            $\|\mathbf{C}_u\|$ is $\|\mathbf{V}\| / \hat{d}_u$ for `"gcn"`, 0 for `"sum"` without
            self loops.
        epsilon: The layer's step size.
        gamma: The layer's diffusion.
        integrator: The layer's integrator.
    """

    layer: int
    nodes: Tensor
    eigenvalues: Tensor
    jacobians: Tensor
    slopes: Tensor
    radius: Tensor
    bound: Tensor
    epsilon: float
    gamma: float
    integrator: Integrator

    @property
    def max_real(self) -> float:
        """The largest real part: above zero the differential equation is unstable at a node."""
        return float(self.eigenvalues.real.max())

    @property
    def distance_from_axis(self) -> Tensor:
        """`[n]`; the largest distance of a node's eigenvalues from the imaginary axis."""
        return self.eigenvalues.real.abs().amax(-1)

    @property
    def amplification(self) -> float:
        r"""The largest $|R(\epsilon\lambda)|$; for forward Euler $|1 + \epsilon\lambda|$."""
        return float(amplification(self.eigenvalues, self.epsilon, self.integrator).max())

    @property
    def largest_stable_step(self) -> float:
        r"""The largest $\epsilon$ up to which no $|R(\epsilon\lambda)|$ exceeds 1 (0: none)."""
        return largest_stable_step(self.eigenvalues, self.integrator)

    @property
    def is_monotone(self) -> bool:
        """Whether no slope is negative, which the propositions assume."""
        return bool((self.slopes >= 0).all())

    def at_gamma(self, gamma: float) -> Tensor:
        """The eigenvalues `[n, d]` that another diffusion gives at the same states."""
        shift = (gamma - self.gamma) * self.slopes
        eigenvalues: Tensor = torch.linalg.eigvals(self.jacobians - torch.diag_embed(shift))
        return eigenvalues

    def suggest_gamma(self) -> float | None:
        r"""The smallest $\gamma$ (to about 1 %) that makes $|R(\epsilon\lambda)| \le 1$ here.

        `None` where none up to $2/\epsilon$, beyond which the damping itself overshoots, does.
        """
        if self.amplification <= 1 + TOLERANCE:
            return self.gamma

        def stable(gamma: float) -> bool:
            grown = amplification(self.at_gamma(gamma), self.epsilon, self.integrator)
            return bool((grown <= 1 + TOLERANCE).all())

        low, high = self.gamma, max(self.gamma, 1e-3)
        while not stable(high):
            low, high = high, high * 1.5
            if high > 2 / self.epsilon:
                return None
        while high - low > 0.01 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if stable(middle) else (middle, high)
        return high


def node_spectrum(
    model: nn.Module,
    x: Tensor,
    edge_index: Adjacency,
    *,
    edge_weight: Tensor | None = None,
    layer: int = 1,
    nodes: Sequence[int] | None = None,
    max_nodes: int = MAX_NODES,
    seed: int = 0,
) -> NodeSpectrum:
    r"""The spectrum of an anti-symmetric layer's right-hand side in each node's own state.

    $$
    \mathbf{J}_u = \frac{\partial}{\partial \mathbf{x}_u}
        \sigma\left((\mathbf{W} - \mathbf{W}^\top - \gamma\mathbf{I})\mathbf{x}_u
        + \Phi(\mathbf{X}, \mathcal{N}_u) + \mathbf{b}\right)
    = \mathbf{S}_u (\mathbf{W} - \mathbf{W}^\top - \gamma\mathbf{I} + \mathbf{C}_u),
    \qquad \mathbf{S}_u = \mathrm{diag}(\sigma'), \quad
    \mathbf{C}_u = \frac{\partial \Phi(\mathbf{X}, \mathcal{N}_u)}{\partial \mathbf{x}_u}
    $$

    $\mathbf{J}_u$ has the eigenvalues of $\mathbf{S}^{1/2}(\mathbf{W} - \mathbf{W}^\top)
    \mathbf{S}^{1/2} + \mathbf{S}^{1/2}(\mathbf{C}_u - \gamma\mathbf{I})\mathbf{S}^{1/2}$: an
    anti-symmetric matrix, which is normal, plus a second one. So (Bauer and Fike) they are not
    farther from the imaginary axis than the second one's norm, `radius`; and purely
    imaginary where it is zero: $\Phi$ = sum without self loops and $\gamma = 0$.

    This is the matrix of the paper's propositions. It leaves out what comes back to a node by way
    of its neighbours; [`layer_spectrum`][adgn.analysis.layer_spectrum] does not.

    Args:
        model: A network or layer made of `AntiSymmetricConv`.
        x: Features (for a bare layer: states), `[N, in_channels]`.
        edge_index: The graph.
        edge_weight: `[E]`, optional.
        layer: At which layer, counted from 1.
        nodes: Which nodes; by default all, or `max_nodes` of them drawn at random.
        max_nodes: How many nodes are drawn at most.
        seed: For the draw.

    Example:
        >>> conv = AntiSymmetricConv(2, phi="sum", gamma=0.0, act=None)
        >>> with torch.no_grad():
        ...     _ = conv.W.copy_(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))  # W − Wᵀ turns the plane
        >>> spectrum = node_spectrum(conv, torch.ones(2, 2), torch.tensor([[0, 1], [1, 0]]))
        >>> spectrum.eigenvalues[0].imag.sort().values.tolist(), spectrum.max_real
        ([-1.0, 1.0], 0.0)
    """
    check_count("max_nodes", max_nodes)
    with measuring(model):
        propagation, states, graph, weight = in_double(model, x, edge_index, edge_weight)
        convs = antisymmetric_layers(propagation)
        check_layer(layer, len(convs))
        chosen = _choose_nodes(nodes, states.size(0), max_nodes, seed).to(states.device)
        if layer > 1 or getattr(propagation, "hops", None) is not None:
            with torch.no_grad():
                states = states_from(propagation, states, graph, weight)[layer - 1]
        conv = convs[layer - 1]
        slopes, own_part = _linearisation(conv, states, graph, weight, chosen)
        rest = own_part - conv.gamma * conv.eye
        jacobians = slopes.unsqueeze(-1) * (conv.w_self() + own_part)
        # A negative slope has a NaN as root, which marks the radius as not defined.
        root = slopes.sqrt()
        scaled = root.unsqueeze(-1) * rest * root.unsqueeze(-2)
        defined = (slopes >= 0).all(-1)
        radius = torch.full_like(slopes[:, 0], torch.nan)
        radius[defined] = torch.linalg.matrix_norm(scaled[defined], 2)
        bound = slopes.abs().amax(-1) * (torch.linalg.matrix_norm(own_part, 2) + conv.gamma)
        found = (torch.linalg.eigvals(jacobians), jacobians, slopes, radius, bound)
        return NodeSpectrum(layer, chosen, *found, conv.epsilon, conv.gamma, conv.integrator)


def antisymmetric_layers(propagation: nn.Module) -> list[AntiSymmetricConv]:
    """The `AntiSymmetricConv` of each layer; one with shared weights comes `num_iters` times."""
    if isinstance(propagation, AntiSymmetricConv):
        found: list[nn.Module] = [propagation]
    else:
        layers = getattr(propagation, "layers", None)
        found = list(layers) if isinstance(layers, nn.ModuleList) else []
    convs = [
        conv
        for conv in found
        if isinstance(conv, AntiSymmetricConv) and not isinstance(conv.integrator, Adaptive)
    ]
    if not convs or len(convs) != len(found):
        raise TypeError(
            f"{type(propagation).__name__} is not made of AntiSymmetricConv layers with steps of "
            "a given size, whose W − Wᵀ − γI the spectrum of a node's own state needs; use "
            "layer_spectrum, which takes any model"
        )
    return [conv for conv in convs for _ in range(conv.num_iters)]


def is_antisymmetric(propagation: nn.Module) -> bool:
    """Whether `antisymmetric_layers` has something to return."""
    try:
        antisymmetric_layers(propagation)
    except TypeError:
        return False
    return True


def _choose_nodes(nodes: Sequence[int] | None, num_nodes: int, max_nodes: int, seed: int) -> Tensor:
    if nodes is not None:
        if len(nodes) == 0:
            raise ValueError("nodes=[] names no node; pass at least one, or None for all")
        for node in nodes:
            check_node(node, num_nodes)
        return torch.tensor(list(nodes))
    if num_nodes <= max_nodes:
        return torch.arange(num_nodes)
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(num_nodes, generator=generator)[:max_nodes].sort().values


def _linearisation(
    conv: AntiSymmetricConv,
    states: Tensor,
    graph: Adjacency,
    weight: Tensor | None,
    nodes: Tensor,
) -> tuple[Tensor, Tensor]:
    """σ' at each node, `[n, d]`, and C = ∂Φ/∂x_u, `[n, d, d]`."""
    extra = {} if weight is None else {"edge_weight": weight}
    x = states.detach().requires_grad_()
    field = conv.field(x, graph, **extra)
    inside = field.pre_activation(x)[nodes]
    slopes = torch.ones_like(inside)
    if field.act is not None:
        before = inside.detach().requires_grad_()
        (slopes,) = torch.autograd.grad(field.act(before).sum(), before)
    if isinstance(conv.phi, LinearAggregation):
        loops = _diagonal(conv.phi.operator(x, graph, **extra))[nodes]
        return slopes, loops.view(-1, 1, 1) * conv.phi.lin.weight
    aggregated = field.phi(x)
    rows = []
    for node in nodes.tolist():
        per_channel = [
            torch.autograd.grad(entry, x, retain_graph=True, materialize_grads=True)[0][node]
            for entry in aggregated[node]
        ]
        rows.append(torch.stack(per_channel))
    return slopes, torch.stack(rows)


def _diagonal(operator: Operator) -> Tensor:
    row, col = operator.places
    own = row == col
    diagonal = operator.value.new_zeros(operator.shape[0])
    return diagonal.index_put((row[own],), operator.value[own])
