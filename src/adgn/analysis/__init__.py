"""The theory as measurements: spectra, sensitivity, gradients, perturbations, energy."""

from adgn.analysis.advice import Advice, Thresholds
from adgn.analysis.energy import EnergyByLayer, dirichlet_energy, energy_by_layer
from adgn.analysis.gradients import (
    GradientNorms,
    WeightGradients,
    gradient_norms,
    weight_gradients,
)
from adgn.analysis.layer_spectra import LayerSpectrum, layer_spectrum
from adgn.analysis.node_spectra import NodeSpectrum, node_spectrum
from adgn.analysis.perturbation import PerturbationGrowth, perturbation_growth
from adgn.analysis.sensitivity import (
    DistanceProfile,
    Sensitivity,
    hops_to,
    sensitivity,
    sensitivity_by_depth,
    sensitivity_by_distance,
)
from adgn.analysis.stability import amplification, largest_stable_step, smallest_stable_gamma
from adgn.analysis.states import HasTrajectory, layer_states
from adgn.analysis.verdict import Diagnosis, diagnose

__all__ = ["Advice", "Diagnosis", "DistanceProfile", "EnergyByLayer"]
__all__ += ["GradientNorms", "HasTrajectory", "LayerSpectrum", "NodeSpectrum", "PerturbationGrowth"]
__all__ += ["Sensitivity", "Thresholds", "WeightGradients", "amplification", "diagnose"]
__all__ += ["dirichlet_energy", "energy_by_layer", "gradient_norms", "hops_to"]
__all__ += ["largest_stable_step", "layer_spectrum", "layer_states", "node_spectrum"]
__all__ += ["perturbation_growth", "sensitivity", "sensitivity_by_depth", "sensitivity_by_distance"]
__all__ += ["smallest_stable_gamma", "weight_gradients"]
