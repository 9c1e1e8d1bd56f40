"""Does the graph matter, in which direction, how far? In closed form, before any training."""

from adgn.analysis.probe.api import probe
from adgn.analysis.probe.findings import Curve, Findings, LeakWarning
from adgn.analysis.probe.hops import HopView
from adgn.analysis.probe.spread import Spread

__all__ = ["Curve", "Findings", "HopView", "LeakWarning", "Spread", "probe"]
