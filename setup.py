"""The optional native kernels; everything else about the package is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = Path("src/adgn/graph/native")


class BuildNative(build_ext):
    """Builds a plain shared library: loaded by ctypes, it has no module to initialise."""

    def get_export_symbols(self, ext: Extension) -> list[str]:
        """No `PyInit` function to export."""
        return ext.export_symbols

    def get_ext_filename(self, fullname: str) -> str:
        """A name without the version of Python, which the library does not use."""
        return str(Path(*fullname.split("."))) + (".dll" if sys.platform == "win32" else ".so")

    def build_extension(self, ext: Extension) -> None:
        """Says what a failure means; the extension is optional, so the build goes on."""
        try:
            super().build_extension(ext)
        except Exception as error:
            print(
                f"adgn: the native kernels were NOT built: {error}. The package works without "
                "them, several times slower. To have them, install a C++17 compiler (such as "
                "g++) and then this package again.",
                file=sys.stderr,
            )
            raise


class PlatformWheel(bdist_wheel):
    """A wheel for every Python 3 of one platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """The library depends on the platform, and on no version of Python."""
        return "py3", "none", super().get_tag()[2]


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
    cmdclass={"build_ext": BuildNative, "bdist_wheel": PlatformWheel},
)
