"""What is in the wheel and in the source distribution, built from a copy of the source tree."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "docs", "scripts", "src", "tests")
IGNORED = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the source tree whose C++ files are empty: compiling them takes long."""
    pytest.importorskip("setuptools")
    if not (ROOT / "setup.py").exists():
        pytest.skip("not run from the source tree")
    tree = tmp_path_factory.mktemp("tree")
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, tree)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=IGNORED)
    for source in (tree / "src/adgn/graph/native").glob("*.cpp"):
        source.write_text("")
    (tree / "src/adgn/graph/native/stale.so").write_text("left by another build")
    command = [sys.executable, "setup.py", "-q", "sdist", "bdist_wheel"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tree


def files_below(tree, *folders):
    paths = (path for folder in folders for path in (tree / folder).rglob("*") if path.is_file())
    return {
        path.relative_to(tree).as_posix() for path in paths if ".egg-info" not in path.as_posix()
    }


def test_the_wheel_is_for_every_python_of_the_platform(tree):
    (wheel,) = (tree / "dist").glob("*.whl")
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    assert wheel.stem.split("-")[4] != "any"
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/WHEEL")]
        assert "Tag: py3-none-" in archive.read(name).decode()


def test_the_wheel_has_the_package_and_no_sources_of_the_library(tree):
    (wheel,) = (tree / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    suffix = "dll" if sys.platform == "win32" else "so"
    library = f"adgn/graph/native/_kernels.{suffix}"
    expected = {
        name.removeprefix("src/")
        for name in files_below(tree, "src")
        if not name.endswith((".cpp", ".hpp", ".so"))
    }
    assert inside == {*expected, library}
    assert "adgn/py.typed" in inside


def test_the_source_distribution_has_all_that_is_needed_to_build_test_and_document(tree):
    (archive,) = (tree / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        inside = {member.name.partition("/")[2] for member in opened if member.isfile()}
    expected = {name for name in files_below(tree, *FOLDERS) if not name.endswith(".so")}
    assert expected - inside == set()
    single = {
        "CHANGELOG.md",
        "CITATION.cff",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "conftest.py",
    }
    single |= {"constraints.txt", "zensical.toml", "pyproject.toml", "setup.py"}
    assert single - inside == set()
    assert not [name for name in inside if name.endswith((".so", ".pyc"))]
