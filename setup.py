"""The optional native kernels; everything else about the package is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path("src/adgn/graph/native")


class BuildNative(build_ext):
    """Builds a plain shared library: loaded by ctypes, it has no module to initialise."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """No `PyInit` function to export."""
        return ext.export_symbols


flags = ["-std=c++17", "-O3", "-ffp-contract=fast", "-fvisibility=hidden", "-Wall", "-Wextra"]
setup(
    ext_modules=[
        Extension(
            "adgn.graph.native._kernels",
            sources=sorted(str(path) for path in FOLDER.glob("*.cpp")),
            depends=sorted(str(path) for path in FOLDER.glob("*.hpp")),
            # No -march: the kernels for newer processors are chosen when the library is loaded.
            extra_compile_args=flags,
            extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
            language="c++",
            optional=True,  # without a compiler the package installs all the same
        )
    ],
    cmdclass={"build_ext": BuildNative},
)
