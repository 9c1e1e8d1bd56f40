"""Anti-symmetric deep graph networks: distant nodes of a graph talk to each other."""

from importlib.metadata import version

__version__ = version("adgn")
