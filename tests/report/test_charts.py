import pytest

from adgn.experiments.records import Moments
from adgn.report.charts import (
    Dot,
    DotChart,
    Series,
    curve_chart,
    depth_charts,
    dot_charts,
)
from adgn.report.numbers import number_format


def test_points_without_a_height_are_not_measured():
    line = Series("a", ((1, 1.0), (2, None), (3, 2.0), (4, float("inf")), (5, 3.0), (6, 4.0)))
    assert line.measured == [(1, 1.0), (3, 2.0), (5, 3.0), (6, 4.0)]


def test_depth_charts_hold_the_scores_in_percent(sample):
    table = sample.tables[3]
    photo, computers = depth_charts(table)
    assert photo.log_x
    assert photo.reference == 25.0
    score = table.cells["gcn", "photo-10"].score.mean
    assert dict(photo.series[0].points)[10] == 100 * score
    assert dict(computers.series[0].points)[30] is None
    assert depth_charts(sample.tables[0]) == []


def test_dot_charts_tell_what_is_missing(sample):
    charts = dot_charts(sample.tables[0])
    assert [chart.title for chart in charts][2] == "sssp, published as “Eccentricity”"
    assert [dot.word for dot in charts[2].dots][1:3] == ["failed", "waiting"]
    assert charts[1].dots[3].word == "not finite"
    assert dot_charts(sample.tables[3]) == []


def test_curves_hold_train_and_validation(sample):
    table = sample.tables[0]
    cell = table.cells["gcn", "sssp"]
    chart = curve_chart(table, cell, "GCN")
    assert [series.label for series in chart.series] == ["train", "validation"]
    assert tuple(y for _, y in chart.series[1].points) == cell.curve.val
    assert curve_chart(table, table.cells["gat", "sssp"], "GAT") is None


def test_the_axis_has_room_for_every_deviation():
    dots = (Dot("a", Moments(mean=0.3, std=0.1), Moments(mean=7.0, std=11.0)),)
    low, high = DotChart("k", "t", "x", dots).span
    assert low < -4.0
    assert high > 18.0
    chart = DotChart("k", "t", "x", dots, log_x=True)
    low, high = chart.span
    assert 0 < low < 0.2
    assert high > 18.0
    assert chart.open_bars
    assert not DotChart("k", "t", "x", dots).open_bars


@pytest.mark.parametrize("value", [0.0, 3.0, -2.0])
def test_a_single_value_gets_a_range(value):
    low, high = DotChart("k", "t", "x", (Dot("a", Moments(mean=value), None),)).span
    assert low < value < high


def test_numbers_of_the_description_are_those_of_the_tables(sample):
    dots = (Dot("a", Moments(mean=-0.4), Moments(mean=-0.5455)), Dot("b", None, None))
    text = DotChart("k", "t", "x", dots).description
    assert text == "x. a: measured −0.400, published −0.546; b: measured none, published none."
    for table in sample.tables:
        decimals = number_format(table.experiment.metric.unit).decimals
        assert {chart.decimals for chart in dot_charts(table)} <= {decimals}
