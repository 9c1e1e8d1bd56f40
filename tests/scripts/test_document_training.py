import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "document_training.py"
    spec = importlib.util.spec_from_file_location("document_training", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_configuration_says(script):
    """Otherwise run `python scripts/document_training.py --write`."""
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.page(text) == text


def test_a_page_without_its_places_is_refused(script):
    with pytest.raises(ValueError, match="has no place"):
        script.page("# Training\n")


def figures(overhead, texas_overhead, shares):
    times = {
        "overhead_quartiles": [0.01, 0.02],
        "overhead_of_medians": 0.015,
        "overhead_of_fastest": 0.016,
        "bare_seconds": {"median": 0.5, "fastest": 0.4},
        "loop_seconds": {"median": 0.51, "fastest": 0.41},
    }
    cases = {
        name: {"rounds": 4} | dict.fromkeys(PARTS, times | {"overhead": value})
        for name, value in (("property", overhead), ("texas", texas_overhead))
    }
    loading = [
        {
            "threads": threads,
            "seconds_are": unit,
            "loading_seconds": 0.01,
            "epoch_seconds": 0.5,
            "share": share,
        }
        for threads, unit, share in zip((1, 2), ("cpu", "wall"), shares, strict=True)
    ]
    return cases | {"loading": loading}


PARTS = ("training", "training_and_validation")


def test_the_verdict_follows_from_the_numbers(script):
    assert script.verdict(figures(0.021, 0.05, (0.03, 0.04))) == (
        "**Within 5.0 %:** the overhead of training on sssp, 5120 graphs (2.1 %); the overhead of "
        "training on Texas, 183 nodes (5.0 %); loading of sssp with one thread (3.0 %); loading "
        "of sssp with two threads (4.0 %). The aim is for training; validation is shown beside it."
    )
    assert script.verdict(figures(0.021, 0.0501, (0.03, 0.06))) == (
        "**Within 5.0 %:** the overhead of training on sssp, 5120 graphs (2.1 %); loading of sssp "
        "with one thread (3.0 %). **Above 5.0 %:** the overhead of training on Texas, 183 nodes "
        "(5.0 %); loading of sssp with two threads (6.0 %). The aim is for training; validation is "
        "shown beside it."
    )
    assert script.verdict(figures(0.07, 0.08, (0.06, 0.06))).startswith("**Above 5.0 %:**")


def test_a_scatter_around_the_aim_is_told(script):
    results = figures(0.03, 0.02, (0.01, 0.01))
    results["texas"]["training"] = results["texas"]["training"] | {
        "overhead_quartiles": [0.01, 0.08]
    }
    assert script.verdict(results).startswith(
        "**Within 5.0 %:** the overhead of training on sssp, 5120 graphs (3.0 %); the overhead of "
        "training on Texas, 183 nodes (2.0 %, but single rounds scatter around 5.0 %);"
    )


def test_the_page_says_whether_the_aim_is_met(script):
    results = json.loads(script.FIGURES.read_text(encoding="utf-8"))
    assert script.verdict(results) in script.PAGE.read_text(encoding="utf-8")
    assert f"`{results['command']}`" in script.PAGE.read_text(encoding="utf-8")
