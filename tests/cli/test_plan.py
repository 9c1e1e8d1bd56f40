"""`adgn plan` and `adgn partition`."""

import re

import pytest
from typer.testing import CliRunner

from adgn.cli.app import app


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def ring(tmp_path):
    """The edges of a ring of twelve nodes."""
    file = tmp_path / "edges.csv"
    lines = [f"n{i},n{(i + 1) % 12}" for i in range(12)]
    file.write_text("\n".join(["source,target", *lines]) + "\n")
    return file


def test_a_graph_that_no_machine_can_hold():
    found = run("plan", "--nodes", "3e9", "--edges", "1e11", "--memory", 512, "--link", 100)
    assert found.exit_code == 0, found.output
    assert "none of these fits in memory" in found.output
    text = " ".join(found.output.split())
    needed = re.search(r"needed: ([\d,]+) machines with 512 GB each", text)
    assert needed and f"reading, for {needed[1]} machines: " in text


def test_a_small_graph_fits_here(ring):
    found = run("plan", ring, "--layers", 4, "--hidden", 8, "--machines", 2)
    assert found.exit_code == 0, found.output
    assert "one graph: 12 nodes, 12 edges" in found.output
    assert "fits: one process" in found.output
    assert "reading: " in found.output and "reading, for" not in found.output
    # Reading takes 100 bytes an edge, more than a step with so few channels.
    sizes = ("--nodes", 1e6, "--edges", 1e8, "--layers", 1, "--hidden", 1, "--features", 1)
    found = run("plan", *sizes, "--memory", 8, "--machines", 4, "--link", 1, "--latency", 9)
    assert "fits: one graph over ranks" in found.output
    assert "reading, for 4 machines: " in found.output


def test_batches_are_planned_without_their_reading():
    found = run("plan", "sssp", "--machines", 2, "--link", 1, "--latency", 9)
    assert found.exit_code == 0, found.output
    assert "batches of graphs" in found.output and "reading:" not in found.output


def test_a_latency_that_is_given(ring):
    found = run("plan", ring, "--machines", 2, "--link", 10, "--latency", 25)
    assert found.exit_code == 0, found.output
    assert "1.25 GB/s between ranks (an exchange takes 25 µs at least)" in " ".join(
        found.output.split()
    )


def test_shards_of_an_edge_table_are_refused(ring, tmp_path):
    found = run("partition", ring, "--parts", 2, "--shards", tmp_path / "out")
    assert found.exit_code == 2 and "neither features nor targets" in found.output


def test_a_partition(ring, tmp_path):
    out = tmp_path / "two.safetensors"
    found = run("partition", ring, "--parts", 2, "--method", "ldg", "--out", out)
    assert found.exit_code == 0, found.output
    assert "2 parts: 2 edges cut (16.7 %)" in found.output and out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "sssp", "--nodes", 5),
        ("plan", "sssp", "--speed", 0),
        ("plan", "sssp", "--latency", 0),
    ],
)
def test_what_does_not_go_together(arguments):
    assert run(*arguments).exit_code == 2
