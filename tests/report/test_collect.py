import json

import pytest

from adgn.experiments.tables import EXPERIMENTS
from adgn.report import ReportError, collect, read_results, write_report
from tests.report.sample import (
    TABLES,
    build_results,
    cell,
    first_rows,
    measured,
    property_table,
    time_table,
    write,
)
from tests.report.test_write import files


def begun(results):
    """The cells that hold something, by table."""
    return {
        table.experiment.name: {k: c for k, c in table.cells.items() if c.status != "waiting"}
        for table in results.tables
    }


def test_collecting_leaves_out_the_work_and_what_holds_nothing(sample_folder, tmp_path):
    copied = collect(sample_folder, tmp_path / "small")
    assert not copied.notes
    before, after = files(sample_folder), files(tmp_path / "small")
    kept = {name for name in before if "/work/" not in name and not name.startswith("report/")}
    empty = {n for n in kept if "/cells/" in n and json.loads(before[n])["status"] == "waiting"}
    assert empty
    kept -= empty
    assert set(after) == kept == {str(p.relative_to(tmp_path / "small")) for p in copied.files}
    about = "reproduction.json"
    assert all(after[name] == before[name] for name in kept - {about})
    small, whole = (read_results(path) for path in (tmp_path / "small", sample_folder))
    names = [table.experiment.name for table in small.tables]
    assert names == [name for name in EXPERIMENTS if name in names]
    assert begun(small) == begun(whole)
    assert (small.budget, small.version) == (whole.budget, whole.version)


def test_what_the_source_does_not_have_stays(tmp_path):
    """Cells, rows and experiments, whichever directory is collected last."""
    small, whole = tmp_path / "small", build_results(tmp_path / "all", TABLES[:3])
    collect(whole, small)
    before = files(small)

    def fewer():
        definition, cells = first_rows(property_table, 3)()
        planned = [row["key"] for row in definition["rows"]]
        others = [{"title": "GCNII", "values": {}}, {"title": "FA", "values": {}}]
        assert "gcnii" not in planned
        return definition | {"quoted": others, "summary": "Newer."}, cells[:-1]

    copied = collect(build_results(tmp_path / "later", [fewer]), small)
    assert not copied.notes
    after, original = read_results(small), read_results(whole)
    assert begun(after) == begun(original)
    table = after.tables[0].experiment
    assert [row.title for row in table.rows] == [
        r.title for r in original.tables[0].experiment.rows
    ]
    assert table.summary == "Newer."
    assert [quoted.title for quoted in table.quoted] == ["FA"]  # GCNII has its row
    collect(whole, small)
    assert {name: json.loads(text) for name, text in files(small).items()} == {
        name: json.loads(text) for name, text in before.items()
    }


def test_rows_that_hold_nothing_stay_as_long_as_the_table_has_them(tmp_path):
    def table(*extra):
        definition, _ = time_table()
        known = [row for row in definition["rows"] if row["key"] in ("gcn", "grand")]
        rows = [*known, *({**known[0], "key": key, "title": key} for key in extra)]
        return definition | {"rows": rows}, [measured(definition, "gcn", "sssp", 1.0, 0.1)]

    def alone():
        definition, cells = table()
        return definition | {"rows": definition["rows"][:1]}, cells

    small = tmp_path / "small"
    collect(build_results(tmp_path / "all", [lambda: table("renamed-since")]), small)
    (before,) = read_results(small).tables
    assert [row.key for row in before.experiment.rows] == ["gcn", "grand", "renamed-since"]
    collect(build_results(tmp_path / "one", [alone]), small)
    (after,) = read_results(small).tables
    assert [row.key for row in after.experiment.rows] == ["gcn", "grand"]
    assert after.statuses["waiting"] == before.statuses["waiting"] - len(after.experiment.columns)


def test_a_cell_that_holds_nothing_replaces_none(tmp_path):
    there = _filled(0, 1.0, None)
    small = tmp_path / "small"
    collect(build_results(tmp_path / "a", [lambda: (time_table()[0], [there])]), small)
    file = small / "property-time" / "cells" / "gcn--sssp.json"
    assert not file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(there))  # as an earlier version copied it
    copied = collect(tmp_path / "a", small)
    assert file not in copied.files and not copied.notes


def test_rows_and_columns_are_in_their_usual_order(tmp_path):
    small = tmp_path / "small"

    def only(row, column):
        def table():
            definition, cells = time_table()
            mine = [c for c in cells if (c["row"], c["column"]) == (row, column)]
            rows = [r for r in definition["rows"] if r["key"] == row]
            columns = [c for c in definition["columns"] if c["key"] == column]
            constant = {column: {"mean": 1.0, "std": None}}
            return definition | {"rows": rows, "columns": columns, "constant": constant}, mine

        return table

    collect(build_results(tmp_path / "a", [only("grand", "sssp")]), small)
    collect(build_results(tmp_path / "b", [only("gcn", "diameter")]), small)
    (table,) = read_results(small).tables
    assert [row.key for row in table.experiment.rows] == ["gcn", "grand"]
    assert [column.key for column in table.experiment.columns] == ["diameter", "sssp"]
    assert sorted(table.experiment.constant) == ["diameter", "sssp"]
    assert table.statuses == {"done": 2, "waiting": 2}


OLD, NEW = "2026-11-01", "2026-11-15"


@pytest.mark.parametrize(
    ("there", "comes", "outcome", "note"),
    [
        (4, 4, "replaced", None),
        (2, 4, "replaced", None),
        (0, 2, "replaced", None),
        (0, "failed", "replaced", None),
        ("failed", 4, "replaced", None),
        ("failed", 0, "kept", "the copy stays, which holds more (waiting, 0 of 4 runs in DIR"),
        (4, 2, "kept", "the copy stays, which holds more (partial, 2 of 4 runs of 2026-11-15 in"),
        (4, 0, "kept", "the copy stays, which holds more (waiting, 0 of 4 runs in DIR, done, 4"),
        (2, 0, "kept", "the copy stays"),
        (3, 2, "kept", "the copy stays"),
    ],
)
def test_a_cell_replaces_only_what_holds_no_more(tmp_path, there, comes, outcome, note):
    found, notes = _merge(tmp_path, _filled(there, 1.0, OLD), _filled(comes, 2.0, NEW))
    assert found == (
        _filled(comes, 2.0, NEW) if outcome == "replaced" else _filled(there, 1.0, OLD)
    )
    assert len(notes) == (note is not None)
    if note:
        assert notes[0].startswith(f"property-time gcn sssp: {note}")


@pytest.mark.parametrize(
    ("there", "comes", "outcome", "said"),
    [
        ((4, OLD), (4, NEW), "replaced", True),
        ((4, OLD), (4, OLD), "replaced", True),
        ((4, NEW), (4, OLD), "kept", True),
        ((4, OLD), (3, NEW), "kept", True),
        ((3, NEW), (4, OLD), "replaced", True),
        ((0, None), (4, NEW), "replaced", False),
    ],
)
def test_of_two_definitions_the_newer_whole_cell_stays(tmp_path, there, comes, outcome, said):
    old = _filled(there[0], 1.0, there[1])
    new = _filled(comes[0], 2.0, comes[1]) | {"fingerprint": "another"}
    found, notes = _merge(tmp_path, old, new)
    assert found == (new if outcome == "replaced" else old)
    assert len(notes) == said
    if said:
        assert "measured with different definitions" in notes[0]
        assert notes[0].endswith("replaced" if outcome == "replaced" else "the copy stays")


def _filled(runs, mean, date):
    """A cell with this many of its four runs, or one that failed before the first."""
    definition, _ = time_table()
    if runs == "failed":
        error = {"message": "it diverged", "traceback": None, "run": None}
        return cell(definition, "gcn", "sssp", status="failed", error=error)
    if not runs:
        return cell(definition, "gcn", "sssp")
    return measured(definition, "gcn", "sssp", mean, 0.1, runs=runs, date=date)


def _merge(tmp_path, there, comes):
    """What is in a copy that had one cell when another one is collected, and what is noted."""
    for name, content in (("there", there), ("comes", comes)):
        folder = build_results(tmp_path / name, [lambda c=content: (time_table()[0], [c])])
        copied = collect(folder, tmp_path / "small")
    file = tmp_path / "small" / "property-time" / "cells" / "gcn--sssp.json"
    assert (file in copied.files) == (json.loads(file.read_text()) == comes)
    return json.loads(file.read_text()), copied.notes


def test_collecting_where_it_would_mix_or_destroy(tmp_path):
    folder = build_results(tmp_path / "a", [time_table])
    with pytest.raises(ReportError, match="is DIR itself"):
        collect(folder, folder)
    other = build_results(tmp_path / "b", [time_table])
    head = json.loads((other / "reproduction.json").read_text())
    write(other / "reproduction.json", head | {"budget": "smoke"})
    with pytest.raises(ReportError, match=r"has results of budget 'laptop'.*'smoke'"):
        collect(other, folder)


def test_no_name_in_a_file_leads_out_of_the_report_or_the_collection(tmp_path):
    folder = build_results(tmp_path / "results", [time_table])
    outside = tmp_path / "victim" / "cells" / "precious.json"
    write(outside, {})
    about = folder / "property-time" / "experiment.json"
    evil = json.loads(about.read_text()) | {"name": "../../victim"}
    write(about, evil)
    write(tmp_path / "victim" / "experiment.json", evil)
    before = files(tmp_path)
    for names in (["property-time"], ["../victim"]):
        head = json.loads((folder / "reproduction.json").read_text()) | {"experiments": names}
        write(folder / "reproduction.json", head)
        before |= {"results/reproduction.json": (folder / "reproduction.json").read_bytes()}
        with pytest.raises(ReportError, match="is not a name"):
            write_report(read_results(folder), tmp_path / "deep" / "out")
        with pytest.raises(ReportError, match="is not a name"):
            collect(folder, tmp_path / "deep" / "copy")
    assert files(tmp_path) == before
