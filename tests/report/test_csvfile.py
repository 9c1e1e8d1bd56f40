import csv
import io

from adgn.report.csvfile import csv_table


def rows(table):
    return list(csv.DictReader(io.StringIO(csv_table(table))))


def test_one_line_per_cell_with_all_digits(sample):
    for table in sample.tables:
        found = rows(table)
        assert [(r["row"], r["column"]) for r in found] == list(table.cells)
        for row, cell in zip(found, table.cells.values(), strict=True):
            score = table.score(cell)
            mean = None if score is None else score.mean
            assert (float(row["mean"]) if row["mean"] else None) == mean
            assert row["status"] == cell.status
            assert int(row["runs"]) == len(cell.runs)
            if cell.published is not None:
                assert float(row["published_mean"]) == cell.published.mean


def test_shares_stay_shares_and_say_so(sample):
    row = rows(sample.tables[2])[0]
    assert row["unit"] == "share"
    assert float(row["mean"]) < 1


def test_errors_and_constants_are_carried(sample):
    found = {(r["row"], r["column"]): r for r in rows(sample.tables[0])}
    assert found["gat", "sssp"]["error"] == "the loss is not finite in epoch 12 <&>"
    assert float(found["gat", "sssp"]["constant_mean"]) == 1.112
    assert float(rows(sample.tables[3])[0]["constant_mean"]) == 0.25


def test_the_normalised_accuracy_of_trees_has_columns_of_its_own(sample):
    found = {(r["row"], r["column"]): r for r in rows(sample.tables[4])}
    row, cell = found["gcn", "radius-4"], sample.tables[4].cells["gcn", "radius-4"]
    assert float(row["normalised_mean"]) == 100 * cell.score.mean / (32 * 4)
    assert row["normalised_std"] == ""
    assert float(row["published_normalised_mean"]) == 0.55
    assert float(row["published_mean"]) == 0.7
    assert {r["normalised_mean"] for table in sample.tables[:4] for r in rows(table)} == {""}
