"""The folder of figures."""

import torch

from adgn.analysis import diagnose
from adgn.analysis.graphs import example_graph
from adgn.analysis.report import write_figures
from adgn.nn import AntiSymmetricConv, build_model


def test_each_figure_is_written_as_png_and_svg(tmp_path):
    torch.manual_seed(0)
    x, graph = torch.randn(6, 3), example_graph("line", 6)
    found = {
        name: diagnose(build_model(name, 3, 4, 1, num_layers=3), x, graph)
        for name in ("adgn", "gcn")
    }
    profiles = {name: each.sensitivity.by_distance() for name, each in found.items()}
    written = write_figures(found, profiles, tmp_path / "out")
    stems = {"eigenvalues-adgn", "eigenvalues-gcn", "sensitivity", "gradients", "energy", "growth"}
    assert {path.stem for path in written} == stems
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    assert {path.suffix for path in written} == {".png", ".svg"}


def test_what_overflowed_is_left_out(tmp_path):
    conv = AntiSymmetricConv(3, phi="sum", num_iters=40, epsilon=1.0, act=None).double()
    with torch.no_grad():
        conv.phi.lin.weight.fill_(1e10)
    found = diagnose(conv, torch.randn(6, 3).double(), example_graph("ring", 6))
    written = write_figures({"wild": found}, {}, tmp_path)
    assert {path.name for path in written} == {"eigenvalues-wild.png", "eigenvalues-wild.svg"}


def test_zeros_are_drawn_without_complaint(tmp_path):
    torch.manual_seed(0)
    model = build_model("gcn", 8, 8, 1, num_layers=100, act="relu")
    found = diagnose(model, torch.randn(6, 8), example_graph("line", 6))
    profile = found.sensitivity.by_distance()
    assert profile.mean.tolist() == [0] * 6
    written = write_figures({"gcn": found}, {"gcn": profile}, tmp_path)
    stems = {"eigenvalues-gcn", "sensitivity", "gradients", "energy", "growth"}
    assert {path.stem for path in written} == stems
