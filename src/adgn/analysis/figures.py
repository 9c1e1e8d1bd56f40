"""The measurements as pictures: PNG and SVG, readable without colour vision."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from adgn._util.figures import LIGHT, STYLE, figure_bytes, line_style
from adgn._util.files import write_file
from adgn.analysis.energy import EnergyByLayer
from adgn.analysis.gradients import GradientNorms
from adgn.analysis.layer_spectra import LayerSpectrum
from adgn.analysis.node_spectra import NodeSpectrum
from adgn.analysis.perturbation import PerturbationGrowth
from adgn.analysis.sensitivity import DistanceProfile
from adgn.analysis.verdict import Diagnosis
from adgn.nn.integrators import EULER, Integrator


def eigenvalue_figure(
    node: NodeSpectrum | None, layer: LayerSpectrum | None, title: str = ""
) -> Figure:
    r"""Eigenvalues in the complex plane, with the region where a step does not amplify.

    For an anti-symmetric model the eigenvalues $\lambda$ of the right-hand side with the region
    where a step of its integrator does not amplify, $|R(\epsilon\lambda)| \le 1$ (forward Euler:
    $|1 + \epsilon\lambda| \le 1$); for others the eigenvalues $\mu$ of the layer with
    $|\mu| \le 1$.
    """
    groups: list[tuple[str, Tensor]] = []
    epsilon = None if node is None else node.epsilon
    # Another integrator's step over the whole graph has no rates to be drawn beside a node's.
    if layer is not None and (node is None or layer.rates is not None):
        rates = layer.rates
        label = "whole graph" if layer.method == "exact" else "whole graph, extreme ones"
        groups.append((label, layer.eigenvalues if rates is None else rates))
        epsilon = layer.epsilon
    if node is not None:
        groups.append(("each node's own state", node.eigenvalues.flatten()))
    if not groups:
        raise ValueError("node=None and layer=None leave nothing to draw; pass at least one")
    figure, axes = _figure(title)
    _set_window(axes, [values.detach().cpu() for _, values in groups], epsilon is None)
    if epsilon is None:
        _draw_disc(axes, 0.0, 1.0, "stable: |μ| ≤ 1")
    elif node is None or node.integrator == EULER:
        _draw_disc(axes, -1 / epsilon, 1 / epsilon, "stable: |1 + ελ| ≤ 1")
    else:
        _draw_region(axes, node.integrator, epsilon)
    for index, (label, values) in enumerate(groups):
        numbers, style = values.detach().cpu(), line_style(index)
        del style["linestyle"]
        look = {**style, "s": 14, "alpha": 0.6, "linewidths": 0}
        axes.scatter(numbers.real.numpy(), numbers.imag.numpy(), label=label, **look)
    axes.axvline(0.0, color="black", linewidth=0.8)
    symbol = "μ" if epsilon is None else "λ"
    axes.set_xlabel(f"real part of {symbol}")
    axes.set_ylabel(f"imaginary part of {symbol}")
    _legend_below(axes)
    return figure


def _draw_disc(axes: Axes, centre: float, radius: float, label: str) -> None:
    look = {"color": LIGHT["s5"]}
    axes.add_patch(Circle((centre, 0), radius, alpha=0.2, linewidth=0, label=label, **look))
    axes.add_patch(Circle((centre, 0), radius, fill=False, linewidth=1, **look))


def _draw_region(axes: Axes, integrator: Integrator, epsilon: float) -> None:
    """Where a step does not amplify, in the window of the axes."""
    real = np.linspace(*axes.get_xlim(), 400)
    imag = np.linspace(*axes.get_ylim(), 400)
    z = epsilon * (real[None, :] + 1j * imag[:, None])
    growth = integrator.amplification(z.astype(np.complex128))
    axes.contourf(real, imag, growth, levels=[0, 1], colors=[LIGHT["s5"]], alpha=0.2)
    axes.contour(real, imag, growth, levels=[1], colors=[LIGHT["s5"]], linewidths=1)
    label = f"stable: {integrator.name}"
    axes.add_patch(Circle((0, 0), 0, color=LIGHT["s5"], alpha=0.2, linewidth=0, label=label))


def sensitivity_figure(profiles: Mapping[str, DistanceProfile], title: str = "") -> Figure:
    r"""$\|\partial\mathbf{x}_v(L) / \partial\mathbf{x}_u(0)\|$ by distance, one line a model."""
    lines = {name: (p.distance, p.mean) for name, p in profiles.items()}
    return _log_lines(
        lines, "distance from u to v (hops)", "sensitivity ‖∂x$_v$(L) / ∂x$_u$(0)‖", title
    )


def gradient_figure(gradients: Mapping[str, GradientNorms], title: str = "") -> Figure:
    r"""$\|\partial\mathcal{L} / \partial\mathbf{X}(\ell)\|$ by layer, one line a model."""
    lines = {name: (None, g.norms) for name, g in gradients.items()}
    return _log_lines(lines, "layer ℓ", "gradient norm ‖∂loss / ∂X(ℓ)‖", title)


def energy_figure(energies: Mapping[str, EnergyByLayer], title: str = "") -> Figure:
    """Relative Dirichlet energy by layer, one line a model."""
    lines = {name: (None, e.relative) for name, e in energies.items()}
    return _log_lines(lines, "layer ℓ", "Dirichlet energy / mean ‖x‖²", title)


def growth_figure(growths: Mapping[str, PerturbationGrowth], title: str = "") -> Figure:
    """Growth of a perturbation by layer, one line a model."""
    lines = {name: (None, g.by_layer) for name, g in growths.items()}
    return _log_lines(lines, "layer ℓ", "size of a perturbation / its first size", title)


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Writes `stem.png` and `stem.svg`, each whole or not at all, and returns their paths."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    if figure.get_layout_engine() is not None:
        # A layout moves a little with each drawing, and by its resolution: it is settled once.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    write_file(paths[0], figure_bytes(figure, "png"))
    write_file(paths[1], figure_bytes(figure, "svg"))
    return paths


def write_figures(
    diagnoses: Mapping[str, Diagnosis], profiles: Mapping[str, DistanceProfile], folder: Path
) -> list[Path]:
    """Writes each figure as PNG and SVG, and returns the files; missing measurements have no line.

    Both mappings are by model name; `profiles` has sensitivity against distance.
    """
    figures: dict[str, Figure] = {}
    for name, found in diagnoses.items():
        if found.node_spectrum is not None or found.layer_spectrum is not None:
            layer = 1 if found.layer_spectrum is None else found.layer_spectrum.layer
            figures[f"eigenvalues-{name}"] = eigenvalue_figure(
                found.node_spectrum, found.layer_spectrum, f"Eigenvalues at layer {layer}: {name}"
            )
    if profiles:
        figures["sensitivity"] = sensitivity_figure(profiles, "Sensitivity against distance")
    if gradients := {k: d.gradients for k, d in diagnoses.items() if d.gradients is not None}:
        figures["gradients"] = gradient_figure(gradients, "Gradient of the loss by layer")
    if energies := {k: d.energy for k, d in diagnoses.items() if d.energy is not None}:
        figures["energy"] = energy_figure(energies, "Difference between neighbours by layer")
    if growths := {k: d.growth for k, d in diagnoses.items() if d.growth is not None}:
        figures["growth"] = growth_figure(growths, "Growth of a perturbation by layer")
    return [path for stem, figure in figures.items() for path in save_figure(figure, folder / stem)]


def _figure(title: str) -> tuple[Figure, Axes]:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        if title:
            axes.set_title(title)
    return figure, axes


def _log_lines(
    lines: Mapping[str, tuple[Tensor | None, Tensor]], xlabel: str, ylabel: str, title: str
) -> Figure:
    if not lines:
        raise ValueError("there is nothing to draw; pass at least one model's measurement")
    figure, axes = _figure(title)
    for index, (name, (at, values)) in enumerate(lines.items()):
        heights = values.detach().cpu()
        places = range(len(heights)) if at is None else at.cpu().numpy()
        # Zeros have no place on a logarithmic axis: the line ends where nothing arrives any more.
        heights = heights.where(heights > 0, float("nan"))
        axes.plot(places, heights.numpy(), markersize=5, label=name, **line_style(index))
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    _legend_below(axes)
    return figure


def _legend_below(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    with mpl.rc_context(STYLE):
        axes.figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)))


def _set_window(axes: Axes, groups: Sequence[Tensor], whole_disc: bool) -> None:
    real = max(float(values.real.abs().max()) for values in groups)
    imag = max(float(values.imag.abs().max()) for values in groups)
    # Not narrower than a fifth of its height: rounding noise around the axis is not a cloud.
    width, height = 1.2 * max(real, 0.1 * imag, 0.01), 1.1 * max(imag, 0.01)
    if whole_disc:
        width = height = 1.1 * max(1.0, real, imag)
        axes.set_aspect("equal")
    axes.set_xlim(-width, width)
    axes.set_ylim(-height, height)
