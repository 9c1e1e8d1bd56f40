"""All figures of several models on one graph, written to a folder."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from adgn.analysis.figures import (
    eigenvalue_figure,
    energy_figure,
    gradient_figure,
    growth_figure,
    save_figure,
    sensitivity_figure,
)
from adgn.analysis.sensitivity import DistanceProfile
from adgn.analysis.verdict import Diagnosis


def write_figures(
    diagnoses: Mapping[str, Diagnosis],
    profiles: Mapping[str, DistanceProfile],
    folder: Path,
) -> list[Path]:
    """Writes each figure as PNG and SVG; a measurement that is missing leaves its line out.

    Args:
        diagnoses: By model name; one figure of eigenvalues for each.
        profiles: Sensitivity against distance, by model name.
        folder: Where the files go; made where it is not there.

    Returns:
        The files.
    """
    figures: dict[str, Figure] = {}
    for name, found in diagnoses.items():
        if found.node_spectrum is not None or found.layer_spectrum is not None:
            figures[f"eigenvalues-{name}"] = eigenvalue_figure(
                found.node_spectrum, found.layer_spectrum, f"Eigenvalues at layer 1: {name}"
            )
    gradients = {k: d.gradients for k, d in diagnoses.items() if d.gradients is not None}
    energies = {k: d.energy for k, d in diagnoses.items() if d.energy is not None}
    growths = {k: d.growth for k, d in diagnoses.items() if d.growth is not None}
    if profiles:
        figures["sensitivity"] = sensitivity_figure(profiles, "Sensitivity against distance")
    if gradients:
        figures["gradients"] = gradient_figure(gradients, "Gradient of the loss by layer")
    if energies:
        figures["energy"] = energy_figure(energies, "Difference between neighbours by layer")
    if growths:
        figures["growth"] = growth_figure(growths, "Growth of a perturbation by layer")
    return [path for stem, figure in figures.items() for path in save_figure(figure, folder / stem)]
