import subprocess
import sys

import pytest

import adgn

PUBLIC = {
    "ADGN",
    "AntiSymmetricConv",
    "analysis",
    "analyze",
    "bench",
    "build_model",
    "data",
    "evaluate",
    "experiments",
    "graph",
    "load_plugin",
    "nn",
    "predict",
    "report",
    "resume",
    "select",
    "selection",
    "tasks",
    "train",
    "training",
}


def run_python(program):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout


def test_importing_the_package_loads_nothing_else():
    heavy = run_python(
        "import sys, adgn\n"
        "adgn.__version__\n"
        "print([name for name in ('torch', 'numpy', 'pydantic', 'rich') if name in sys.modules])"
    )
    assert heavy.strip() == "[]"


@pytest.mark.long
def test_public_names_are_there_in_a_new_process():
    names = run_python(
        "import adgn\n"
        "print(*sorted(name for name in adgn.__all__ if getattr(adgn, name) is not None))"
    )
    assert set(names.split()) >= PUBLIC
    assert set(dir(adgn)) >= PUBLIC


def test_a_public_name_is_the_one_of_its_package():
    assert adgn.train is adgn.training.train
    assert adgn.ADGN is adgn.nn.ADGN
    assert vars(adgn)["ADGN"] is adgn.nn.ADGN  # kept: the next access is a plain one


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'adgn' has no attribute 'tarin'"):
        _ = adgn.tarin
    with pytest.raises(ImportError, match="cannot import name 'tarin'"):
        from adgn import tarin  # noqa: F401
