from adgn.report.normalised import has_normalised, normalised_score, published_normalised
from adgn.report.results import Moments, Published


def test_only_the_trees_have_it(sample):
    assert [has_normalised(table) for table in sample.tables] == [False] * 4 + [True]
    assert normalised_score(sample.tables[0].cells["gcn", "sssp"]) is None


def test_the_published_value_is_that_of_the_cell_s_row_and_column(sample):
    cells = sample.tables[4].cells
    assert published_normalised(cells["adgn", "radius-4"].published) == Moments(mean=1.16)
    assert published_normalised(cells["gcn", "radius-5"].published) == Moments(mean=0.12)
    assert published_normalised(None) is None
    assert published_normalised(Published(mean=0.5, row="GCN", column="radius 9")) is None
    assert published_normalised(Published(mean=0.5)) is None


def test_what_the_paper_does_not_report_is_none():
    assert published_normalised(Published(mean=None, row="GIN", column="radius 8")) is None
    there = Published(mean=None, row="GAT", column="radius 8")
    assert published_normalised(there) == Moments(mean=0.04)
