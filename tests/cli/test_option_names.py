import inspect
import re

import pytest
from typer.main import get_command

from adgn import Graph
from adgn.cli.app import app
from adgn.cli.option_names import _OPTIONS, in_options


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ignore=['a', 'b c']", "--ignore a --ignore 'b c'"),
        ("categories=[…]: names", "--category …: names"),
        ("(directed=False: each)", "(--undirected: each)"),
        ("say it, directed=…, once", "say it, --directed or --undirected, once"),
        ("source='a', target='b'", "--edge-source a, --edge-target b"),
        ("id='…'.", "--id …."),
        ("test_size=0.2; or", "--test-size 0.2; or"),
        ("delimiter=';'", "--delimiter ';'"),
        ("--set model.graph=3 and a_time=4", "--set model.graph=3 and a_time=4"),
        ("level='node' predicts nodes", "level='node' predicts nodes"),
    ],
)
def test_arguments_become_options(text, expected):
    assert in_options(text) == expected


def test_all_options_are_there_and_all_arguments_that_have_one_are_named():
    (fit,) = (command for name, command in get_command(app).commands.items() if name == "fit")
    options = {name for parameter in fit.params for name in parameter.opts}
    assert set(_OPTIONS.values()) <= options
    arguments = set(inspect.signature(Graph.from_tables).parameters)
    python_only = {"nodes", "edges", "directed", "features", "level", "for_prediction"}
    assert arguments - python_only <= set(_OPTIONS)
    assert all(re.fullmatch(r"\w+", name) for name in _OPTIONS)
