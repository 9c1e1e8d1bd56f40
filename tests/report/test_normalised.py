from adgn.report.normalised import (
    has_normalised,
    normalised_score,
    published_normalised,
    quoted_normalised,
)
from adgn.report.results import Column, Moments, Published


def test_only_the_trees_have_it(sample):
    assert [has_normalised(table) for table in sample.tables] == [False] * 4 + [True]
    assert normalised_score(sample.tables[0].cells["gcn", "sssp"]) is None


def test_the_published_value_is_that_of_the_cell_s_row_and_column(sample):
    cells = sample.tables[4].cells
    assert published_normalised(cells["adgn", "radius-4"]) == Moments(mean=1.16)
    assert published_normalised(cells["gcn", "radius-5"]) == Moments(mean=0.12)
    alone = cells["gcn", "radius-5"].model_copy(update={"published": None})
    assert published_normalised(alone) is None
    elsewhere = Published(mean=0.5, row="GCN", column="radius 9")
    assert published_normalised(alone.model_copy(update={"published": elsewhere})) is None


def test_what_the_paper_does_not_report_is_none():
    assert quoted_normalised("GIN", Column(key="radius-8", title="radius 8")) is None
    assert quoted_normalised("GAT", Column(key="radius-8", title="radius 8")) == Moments(mean=0.04)
