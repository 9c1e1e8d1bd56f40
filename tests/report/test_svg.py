import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from adgn.report.charts import (
    Dot,
    DotChart,
    LineChart,
    Series,
    curve_chart,
    depth_charts,
    dot_charts,
)
from adgn.report.numbers import number_format
from adgn.report.results import Moments
from adgn.report.svg import DASHES, MARKERS, dot_svg, line_svg, panels_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawings(results):
    for table in results.tables:
        yield from map(line_svg, depth_charts(table))
        yield from map(dot_svg, dot_charts(table))
        for cell in table.cells.values():
            chart = curve_chart(table, cell, "A & <B>")
            if chart is not None:
                yield line_svg(chart, small=True)


def test_every_chart_is_a_labelled_image_with_finite_places(sample):
    keys = set()
    for text in drawings(sample):
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert title.text
        assert len(description.text) > 20
        assert not re.search(r"[\" ,M L(](nan|-?inf)", text)
        keys.add(title.get("id"))
    assert len(keys) == sum(1 for _ in drawings(sample))


def test_lines_differ_in_colour_marker_and_dashes(sample):
    assert len(set(DASHES)) == len(DASHES) == len(MARKERS) == len(set(MARKERS))
    root = ElementTree.fromstring(line_svg(depth_charts(sample.tables[3])[0]))
    lines = list(root.iter(f"{SVG}polyline"))
    assert len({line.get("class") for line in lines}) == len(lines) == 6
    assert len({line.get("stroke-dasharray") for line in lines}) == 6
    names = [t for t in root.iter(f"{SVG}text") if t.get("class") == "name"]
    assert [name.text for name in names] == ["A-DGN", "DGC", "GCNII", "GIN", "GAT", "GCN"]
    heights = [float(name.get("y")) for name in names]
    assert all(b - a >= 10 for a, b in pairwise(heights))


def test_places_follow_the_values():
    points = ((1.0, 0.0), (2.0, 1.0), (4.0, 3.0))
    chart = LineChart("k", "t", "x", "y", (Series("a", points),), (1, 2, 4), log_x=True)
    (line,) = ElementTree.fromstring(line_svg(chart)).iter(f"{SVG}polyline")
    (x0, y0), (x1, y1), (x2, y2) = [map(float, p.split(",")) for p in line.get("points").split()]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert (y0 - y1) * 2 == pytest.approx(y1 - y2, abs=0.4)


def test_nothing_measured_is_said():
    chart = LineChart("k", "t", "x", "y", (Series("a", ((1.0, None),)),))
    assert "nothing measured yet" in line_svg(chart)


def test_a_file_of_panels_carries_its_colours(sample):
    text = panels_svg([dot_svg(c) for c in dot_charts(sample.tables[0])], "Title <&>", notes=["n"])
    root = ElementTree.fromstring(text)
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text
    panels = root.findall(f"{SVG}svg")
    assert len({(p.get("x"), p.get("y")) for p in panels}) == len(panels) == 4


def test_a_run_of_one_epoch_is_drawn():
    chart = LineChart("k", "t", "epoch", "y", (Series("train", ((1.0, 0.3),)),))
    for small in (True, False):
        ElementTree.fromstring(text := line_svg(chart, small=small))
        assert "polyline" in text


@pytest.mark.parametrize("log_x", [False, True])
def test_deviations_are_bars_inside_the_axis(log_x):
    dots = (
        Dot("a", Moments(mean=0.3, std=0.1), Moments(mean=7.0, std=11.0)),  # reaches below zero
        Dot("b", Moments(mean=2.0, std=1.0), None),
    )
    root = ElementTree.fromstring(dot_svg(DotChart("k", "t", "x", dots, log_x=log_x)))
    bars = [p for p in root.iter(f"{SVG}path") if "deviation" in p.get("class")]
    ends = [[float(x) for x in re.findall(r"[ML]([-\d.]+)", bar.get("d"))] for bar in bars]
    assert len(ends) == 3
    width = float(root.get("viewBox").split()[2])
    assert all(0 < low < high < width for low, high in ends)


def test_notes_that_have_no_room_side_by_side_are_one_below_the_other(sample):
    (chart, *_) = dot_charts(sample.tables[1])
    notes = ["A sentence of some length.", "And another one, just as long as that."]
    root = ElementTree.fromstring(panels_svg([dot_svg(chart)], "Title", notes=notes))
    lines = {t.text: float(t.get("y")) for t in root.findall(f"{SVG}text")}
    assert lines[notes[0]] < lines[notes[1]] < float(root.find(f"{SVG}svg").get("y"))
    wide = ElementTree.fromstring(panels_svg([dot_svg(chart)] * 2, "Title", notes=notes))
    assert " ".join(notes) in [t.text for t in wide.findall(f"{SVG}text")]


def test_names_of_lines_that_end_together_stay_below_the_title():
    ends = [40.0] * 5 + [20.0] * 4
    lines = tuple(Series(f"m{k}", ((1.0, 40.0), (2.0, end))) for k, end in enumerate(ends))
    root = ElementTree.fromstring(line_svg(LineChart("k", "t", "x", "y", lines)))
    texts = list(root.iter(f"{SVG}text"))
    (label,) = [t for t in texts if t.text == "y"]
    heights = sorted(float(t.get("y")) for t in texts if t.get("class") == "name")
    assert heights[0] > float(label.get("y"))
    assert heights[-1] < float(root.get("viewBox").split()[3])
    assert all(b - a >= 13 for a, b in pairwise(heights))


def test_numbers_of_a_logarithmic_axis_do_not_touch():
    dots = (Dot("a", Moments(mean=0.002), None), Dot("b", Moments(mean=0.2), None))
    root = ElementTree.fromstring(dot_svg(DotChart("k", "t", "x", dots, log_x=True)))
    ticks = [t for t in root.iter(f"{SVG}text") if t.get("class") == "tick"]
    assert len(ticks) >= 3
    places = [(float(t.get("x")), 6 * len(t.text)) for t in ticks]
    assert all(b - a > (one + other) / 2 for (a, one), (b, other) in pairwise(places))


def test_numbers_of_the_description_are_those_of_the_tables(sample):
    dots = (Dot("a", Moments(mean=-0.4), Moments(mean=-0.5455)), Dot("b", None, None))
    root = ElementTree.fromstring(dot_svg(DotChart("k", "t", "x", dots)))
    text = root.find(f"{SVG}desc").text
    assert text == "x. a: measured −0.400, published −0.546; b: measured none, published none."
    for table in sample.tables:
        decimals = number_format(table.experiment.metric.unit).decimals
        assert {chart.decimals for chart in dot_charts(table)} <= {decimals}
