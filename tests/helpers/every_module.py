"""Imports the whole package, so that a process forked afterwards has nothing left to import."""

import importlib
import pkgutil

import adgn

for module in pkgutil.walk_packages(adgn.__path__, "adgn."):
    if not module.name.endswith("._kernels"):  # a shared library, and no module
        importlib.import_module(module.name)
