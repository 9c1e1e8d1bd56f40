"""Figures: what is drawn is what was measured, nothing overlaps, files are whole."""

import itertools
from dataclasses import replace

import pytest
import torch
from matplotlib.image import imread

from adgn.analysis import (
    diagnose,
    energy_by_layer,
    gradient_norms,
    layer_spectrum,
    node_spectrum,
    perturbation_growth,
    sensitivity_by_distance,
)
from adgn.analysis import figures as draw
from adgn.analysis.graphs import example_graph
from adgn.nn import AntiSymmetricConv, build_model
from adgn.nn.integrators import INTEGRATORS

GRAPH = example_graph("line", 9)
NAMES = ("adgn", "gcn", "gcnii", "gat")


@pytest.fixture(scope="module")
def models():
    torch.manual_seed(0)
    return {name: build_model(name, 3, 5, 1, num_layers=6) for name in NAMES}


@pytest.fixture(scope="module")
def pictures(models):
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))

    def all_of(measure):
        return {name: measure(model, x, GRAPH) for name, model in models.items()}

    node = node_spectrum(models["adgn"], x, GRAPH)
    layer = layer_spectrum(models["adgn"], x, GRAPH)
    other = layer_spectrum(models["gcn"], x, GRAPH)
    return {
        "eigenvalues": draw.eigenvalue_figure(node, layer, "Eigenvalues"),
        "unit disc": draw.eigenvalue_figure(None, other, "Eigenvalues"),
        "nodes alone": draw.eigenvalue_figure(node, None),
        "other integrator": draw.eigenvalue_figure(
            *(replace(node, integrator=INTEGRATORS["ab2"]), None, "Eigenvalues")
        ),
        "sensitivity": draw.sensitivity_figure(all_of(sensitivity_by_distance), "Sensitivity"),
        "gradients": draw.gradient_figure(all_of(gradient_norms), "Gradients"),
        "energy": draw.energy_figure(all_of(energy_by_layer), "Energy"),
        "growth": draw.growth_figure(all_of(perturbation_growth), "Growth"),
    }


def texts(figure):
    """Title, labels, shown tick labels and legend entries with the places they are drawn at."""
    (axes,) = figure.axes
    low, high = zip(axes.get_xlim(), axes.get_ylim(), strict=True)
    found = [axes.title, axes.xaxis.label, axes.yaxis.label, *figure.legends[0].get_texts()]
    for axis, bounds in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
            if min(bounds) <= place <= max(bounds):
                found.append(label)
    del low, high
    return [text for text in found if text.get_text()]


@pytest.mark.parametrize(
    "name",
    [
        "eigenvalues",
        "unit disc",
        "nodes alone",
        "sensitivity",
        "gradients",
        "energy",
        "growth",
    ],
)
def test_no_text_overlaps_another_or_leaves_the_picture(pictures, name):
    figure = pictures[name]
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts(figure)]
    assert len(boxes) > 6
    for (one, box), (other, rival) in itertools.combinations(boxes, 2):
        assert not box.overlaps(rival), f"{one!r} and {other!r} overlap"
    for text, box in boxes:
        assert figure.bbox.x0 - 1 <= box.x0 and box.x1 <= figure.bbox.x1 + 1, text
        assert figure.bbox.y0 - 1 <= box.y0 and box.y1 <= figure.bbox.y1 + 1, text


def test_lines_are_the_measurements_and_told_apart(pictures, models):
    x = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    lines = pictures["energy"].axes[0].get_lines()
    assert [line.get_label() for line in lines] == list(NAMES)
    assert len({line.get_color() for line in lines}) == len(NAMES)
    assert len({line.get_marker() for line in lines}) == len(NAMES)
    expected = energy_by_layer(models["gat"], x, GRAPH).relative
    torch.testing.assert_close(torch.as_tensor(lines[3].get_ydata()), expected)


def test_the_region_of_stability_is_where_a_step_does_not_amplify(pictures):
    region = pictures["eigenvalues"].axes[0].patches[0]
    assert region.center == (-10.0, 0) and region.radius == 10.0  # ε = 0.1
    unit = pictures["unit disc"].axes[0].patches[0]
    assert unit.center == (0.0, 0) and unit.radius == 1.0


def test_all_eigenvalues_are_within_the_window(pictures):
    for name in ("eigenvalues", "unit disc", "nodes alone"):
        axes = pictures[name].axes[0]
        for cloud in axes.collections:
            points = cloud.get_offsets()
            assert (points[:, 0] >= axes.get_xlim()[0]).all()
            assert (points[:, 0] <= axes.get_xlim()[1]).all()
            assert (points[:, 1] >= axes.get_ylim()[0]).all()
            assert (points[:, 1] <= axes.get_ylim()[1]).all()


def test_files_are_png_and_svg_and_the_same_each_time(pictures, tmp_path):
    png, svg = draw.save_figure(pictures["growth"], tmp_path / "new" / "growth")
    assert imread(png).shape[:2] == (690, 960)
    assert svg.read_text().startswith("<?xml")
    again = draw.save_figure(pictures["growth"], tmp_path / "again")
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]
    assert sorted(path.name for path in png.parent.iterdir()) == ["growth.png", "growth.svg"]


def test_a_failed_write_leaves_the_old_file(pictures, tmp_path, monkeypatch):
    (tmp_path / "growth.png").write_text("old")

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        draw.save_figure(pictures["growth"], tmp_path / "growth")
    assert [path.name for path in tmp_path.iterdir()] == ["growth.png"]
    assert (tmp_path / "growth.png").read_text() == "old"


def test_a_signal_that_never_arrives_ends_its_line(models):
    x = torch.randn(9, 3)
    profile = sensitivity_by_distance(models["gcn"], x, GRAPH, nodes=[0])
    assert profile.mean[-1] == 0  # 6 layers, 8 hops
    (line,) = draw.sensitivity_figure({"gcn": profile}).axes[0].get_lines()
    heights = torch.as_tensor(line.get_ydata())
    assert heights.isnan().tolist() == [False] * 7 + [True] * 2


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="node=None and layer=None"):
        draw.eigenvalue_figure(None, None)
    with pytest.raises(ValueError, match="nothing to draw"):
        draw.growth_figure({})


def test_each_figure_is_written_as_png_and_svg(tmp_path):
    torch.manual_seed(0)
    x, graph = torch.randn(6, 3), example_graph("line", 6)
    found = {
        name: diagnose(build_model(name, 3, 4, 1, num_layers=3), x, graph)
        for name in ("adgn", "gcn")
    }
    profiles = {name: each.sensitivity.by_distance() for name, each in found.items()}
    written = draw.write_figures(found, profiles, tmp_path / "out")
    stems = {"eigenvalues-adgn", "eigenvalues-gcn", "sensitivity", "gradients", "energy", "growth"}
    assert {path.stem for path in written} == stems
    assert sorted(written) == sorted((tmp_path / "out").iterdir())
    assert {path.suffix for path in written} == {".png", ".svg"}


def test_what_overflowed_is_left_out(tmp_path):
    conv = AntiSymmetricConv(3, phi="sum", num_iters=40, epsilon=1.0, act=None).double()
    with torch.no_grad():
        conv.phi.lin.weight.fill_(1e10)
    found = diagnose(conv, torch.randn(6, 3).double(), example_graph("ring", 6))
    written = draw.write_figures({"wild": found}, {}, tmp_path)
    assert {path.name for path in written} == {"eigenvalues-wild.png", "eigenvalues-wild.svg"}


def test_zeros_are_drawn_without_complaint(tmp_path):
    torch.manual_seed(0)
    model = build_model("gcn", 8, 8, 1, num_layers=100, act="relu")
    found = diagnose(model, torch.randn(6, 8), example_graph("line", 6))
    profile = found.sensitivity.by_distance()
    assert profile.mean.tolist() == [0] * 6
    written = draw.write_figures({"gcn": found}, {"gcn": profile}, tmp_path)
    stems = {"eigenvalues-gcn", "sensitivity", "gradients", "energy", "growth"}
    assert {path.stem for path in written} == stems
