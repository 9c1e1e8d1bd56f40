import io
import re
from itertools import islice, pairwise
from xml.etree import ElementTree

import pytest
from PIL import Image

from adgn._util.figures import figure_bytes, theme_css, themed_svg
from adgn.experiments.records import Moments
from adgn.report.charts import (
    Dot,
    DotChart,
    LineChart,
    Series,
    charts,
    curve_chart,
    depth_charts,
    dot_charts,
)
from adgn.report.drawing import chart_svg, panels_figure
from tests.report.sample import TABLES

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7.6  # at most, in the fonts of browsers


def drawings(results):
    for table in results.tables:
        yield from map(chart_svg, depth_charts(table))
        yield from map(chart_svg, dot_charts(table))
        curves = (curve_chart(table, cell, "A & <B>") for cell in table.cells.values())
        some = islice(filter(None, curves), 4)  # the others are drawn alike
        yield from (chart_svg(chart, small=True) for chart in some)


def texts(root):
    return {t.text: (float(t.get("x")), float(t.get("y"))) for t in root.iter(f"{SVG}text")}


def strokes(root, colour):
    """The points of all lines with a colour."""
    found = []
    for path in root.iter(f"{SVG}path"):
        style = path.get("style", "")
        if "fill: none" in style and f"stroke: var(--{colour})" in style:
            numbers = list(map(float, re.findall(r"-?[\d.]+", path.get("d"))))
            found.append(list(zip(numbers[::2], numbers[1::2], strict=True)))
    return found


@pytest.mark.long
def test_every_chart_is_a_labelled_image_with_finite_places_and_ids_of_its_own(sample):
    ids = []
    for text in drawings(sample):
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img"
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert title.text
        assert len(description.text) > 20
        assert not re.search(r"[\" ,M L(](nan|-?inf)", text)
        ids += [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)) > 100


def test_lines_differ_in_colour_marker_and_dashes(sample):
    root = ElementTree.fromstring(chart_svg(depth_charts(sample.tables[3])[0]))
    lines = [
        p.get("style") for p in root.iter(f"{SVG}path") if "stroke-width: 1.8" in p.get("style")
    ]
    for what in (r"stroke: var\(--s\d\)", "stroke-dasharray: [^;]*|$"):
        assert len({re.search(what, line)[0] for line in lines}) == len(lines) == 6
    assert len(root.findall(f"{SVG}defs")) == 6  # the markers
    places = texts(root)
    names = ["A-DGN", "DGC", "GCNII", "GIN", "GAT", "GCN"]
    heights = [places[name][1] for name in names]
    assert all(b - a >= 10 for a, b in pairwise(heights))


def test_places_follow_the_values():
    points = ((1.0, 0.0), (2.0, 1.0), (4.0, 3.0))
    chart = LineChart("k", "t", "x", "y", (Series("a", points),), (1, 2, 4), log_x=True)
    (line,) = strokes(ElementTree.fromstring(chart_svg(chart)), "s0")
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert (y0 - y1) * 2 == pytest.approx(y1 - y2, abs=0.4)


def test_a_gap_parts_a_line_and_keeps_its_place_on_the_axis():
    points = ((1.0, 1.0), (2.0, 2.0), (3.0, None), (4.0, 3.0), (5.0, 3.0), (6.0, None))
    chart = LineChart("k", "t", "x", "y", (Series("a", points),), (1, 2, 3, 4, 5, 6))
    text = chart_svg(chart)
    root = ElementTree.fromstring(text)
    (line,) = [p for p in root.iter(f"{SVG}path") if "var(--s0)" in p.get("style", "")][:1]
    assert len(re.findall("M", line.get("d"))) == 2
    axis = [x for x, _ in strokes(root, "rule")[0]]
    assert texts(root)["6"][0] < max(axis)


def test_nothing_measured_is_said():
    chart = LineChart("k", "t", "x", "y", (Series("a", ((1.0, None),)),))
    text = chart_svg(chart)
    assert "nothing measured yet" in text
    assert '<desc id="k-d">Nothing measured yet.</desc>' in text


def test_a_file_of_panels_carries_its_colours(sample):
    figure = panels_figure(dot_charts(sample.tables[0]), "Title <&>", ["n"])
    root = ElementTree.fromstring(themed_svg(figure, "k", "Title <&>", "d", theme_css()))
    assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text
    ground = root.find(f"{SVG}path")
    assert "fill: var(--ground)" in ground.get("style")
    places = texts(root)
    titles = {places[chart.title] for chart in dot_charts(sample.tables[0])}
    assert len(titles) == 4
    assert {x for x, _ in titles} == {16.0, 384.0}
    assert len({y for _, y in titles}) == 2


def test_a_run_of_one_epoch_is_drawn():
    chart = LineChart("k", "t", "epoch", "y", (Series("train", ((1.0, 0.3),)),))
    for small in (True, False):
        root = ElementTree.fromstring(chart_svg(chart, small=small))
        assert [use.get("style") for use in root.iter(f"{SVG}use")]


@pytest.mark.parametrize("log_x", [False, True])
def test_deviations_are_bars_inside_the_axis(log_x):
    dots = (
        Dot("a", Moments(mean=0.3, std=0.1), Moments(mean=7.0, std=11.0)),  # reaches below zero
        Dot("b", Moments(mean=2.0, std=1.0), None),
    )
    root = ElementTree.fromstring(chart_svg(DotChart("k", "t", "x", dots, log_x=log_x)))
    bars = [*strokes(root, "s0"), *strokes(root, "s1")]
    assert len(bars) == 3
    width = float(root.get("viewBox").split()[2])
    assert all(0 < low < high < width for (low, _), (high, _) in bars)


def test_measured_values_are_filled_and_published_ones_open():
    dots = (Dot("a", Moments(mean=1.0), Moments(mean=3.0)),)
    root = ElementTree.fromstring(chart_svg(DotChart("k", "t", "x", dots)))
    marks = {use.get("style").split(";")[0]: float(use.get("x")) for use in root.iter(f"{SVG}use")}
    assert set(marks) == {"fill: var(--s0)", "fill: var(--ground)"}
    assert marks["fill: var(--s0)"] < marks["fill: var(--ground)"]


@pytest.mark.parametrize("level", [0.0, 2.0, 5.0, 10.0])
@pytest.mark.parametrize("word", ["waiting", "not finite"])
def test_a_word_in_place_of_a_dot_is_not_across_the_reference(level, word):
    dots = (
        Dot("a", None, Moments(mean=10.0), word),
        Dot("b", Moments(mean=0.0), None),
    )
    chart = DotChart("k", "t", "x", dots, reference=level)
    root = ElementTree.fromstring(chart_svg(chart))
    ((line, _), _) = strokes(root, "muted")[0]
    start, _ = texts(root)[word]
    assert not start - 2 < line < start + LETTER * len(word)
    assert start + LETTER * len(word) < float(root.get("width"))


def test_notes_that_have_no_room_side_by_side_are_one_below_the_other(sample):
    (chart, *_) = dot_charts(sample.tables[1])
    notes = ["A sentence of some length.", "And another one, just as long as that."]

    def places(count):
        figure = panels_figure([chart] * count, "Title", notes)
        return texts(ElementTree.fromstring(themed_svg(figure, "k", "t", "d")))

    narrow = places(1)
    assert narrow[notes[0]][1] < narrow[notes[1]][1] < narrow[chart.title][1]
    assert " ".join(notes) in places(2)


def test_names_of_lines_that_end_together_stay_below_the_title():
    ends = [40.0] * 5 + [20.0] * 4
    lines = tuple(Series(f"m{k}", ((1.0, 40.0), (2.0, end))) for k, end in enumerate(ends))
    root = ElementTree.fromstring(chart_svg(LineChart("k", "t", "x", "y", lines)))
    places = texts(root)
    heights = sorted(places[f"m{k}"][1] for k in range(9))
    assert heights[0] > places["y"][1]
    assert heights[-1] < float(root.get("viewBox").split()[3])
    assert all(b - a >= 13 for a, b in pairwise(heights))


def test_numbers_of_a_logarithmic_axis_do_not_touch():
    dots = (Dot("a", Moments(mean=0.002), None), Dot("b", Moments(mean=0.2), None))
    root = ElementTree.fromstring(chart_svg(DotChart("k", "t", "x", dots, log_x=True)))
    ticks = [t for t in root.iter(f"{SVG}text") if "text-anchor: middle" in t.get("style")]
    assert len(ticks) >= 3
    places = [(float(t.get("x")), 6 * len(t.text)) for t in ticks]
    assert all(b - a > (one + other) / 2 for (a, one), (b, other) in pairwise(places))


@pytest.mark.parametrize("index", range(len(TABLES)))
def test_a_picture_shows_something_and_is_the_same_each_time(sample, index):
    table = sample.tables[index]
    content = figure_bytes(panels_figure(charts(table), "Title"), "png")
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    assert picture.width > 1000
    assert len(picture.getcolors(maxcolors=10**6)) > 50
    if index == 1:
        assert figure_bytes(panels_figure(charts(table), "Title"), "png") == content
