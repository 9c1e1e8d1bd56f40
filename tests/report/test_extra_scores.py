from adgn.experiments.records import Moments, Published
from adgn.report.extra_scores import extra_scores, measured_extra, published_extra, quoted_extra
from adgn.training.tasks import TASKS

(NORMALISED,) = TASKS["tree-neighbors-match"].extra_scores


def test_only_the_trees_have_one(sample):
    assert [list(extra_scores(table)) for table in sample.tables] == [[]] * 4 + [[NORMALISED]]
    assert measured_extra(sample.tables[0].cells["gcn", "sssp"], NORMALISED) is None


def test_the_published_value_is_that_of_the_cell_s_row_and_column(sample):
    cells = sample.tables[4].cells
    assert published_extra(cells["adgn", "radius-4"], NORMALISED) == Moments(mean=1.16)
    assert published_extra(cells["gcn", "radius-5"], NORMALISED) == Moments(mean=0.12)
    alone = cells["gcn", "radius-5"].model_copy(update={"published": None})
    assert published_extra(alone, NORMALISED) is None
    elsewhere = Published(mean=0.5, row="GCN", column="radius 9")
    assert published_extra(alone.model_copy(update={"published": elsewhere}), NORMALISED) is None


def test_what_the_paper_does_not_report_is_none():
    assert quoted_extra("GIN", "radius 8", NORMALISED) is None
    assert quoted_extra("GAT", "radius 8", NORMALISED) == Moments(mean=0.04)
    assert quoted_extra("DAGNN", "radius 8", NORMALISED) is None
