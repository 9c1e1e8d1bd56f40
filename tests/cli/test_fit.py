"""A user's tables through the command line: fit, predict, evaluate, explain; wrong input."""

import csv
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from adgn.cli.app import app, main
from tests.estimators.graphs import two_groups

QUICK = ("--set", "loop.max_epochs=3")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def write_table(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read_table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two groups of people as CSV files, twenty of them without a group."""
    folder = tmp_path_factory.mktemp("tables")
    graph, truth = two_groups()
    names = [f"n{i}" for i in range(graph.num_nodes)]
    known = ["" if v is None else v for v in graph.target["y"].to_pylist()]
    x = graph.x.numpy()
    columns = {"name": names, "side": known, "a": x[:, 0], "b": x[:, 1]}
    columns["colour"] = ["red", "blue", "green"] * 40
    nodes = write_table(folder / "people.csv", columns)
    ends = {
        k: [f"n{i}" for i in row.tolist()] for k, row in zip("uv", graph.edge_index, strict=True)
    }
    edges = write_table(folder / "knows.csv", ends)
    answers = write_table(folder / "answers.csv", {**columns, "side": truth})
    return nodes, edges, answers


@pytest.fixture(scope="module")
def fitted(tables, tmp_path_factory):
    out = tmp_path_factory.mktemp("fit") / "model"
    result = run("fit", *tables[:2], "--target", "side", "--undirected", "--out", out, *QUICK)
    assert result.exit_code == 0, result.output
    return out, result


def test_fit_shows_decisions_notes_progress_and_the_comparison(fitted):
    out, result = fitted
    assert "'name'" in result.stdout
    assert "knows.csv: 'u' and 'v' are taken as ends of edges" in result.stdout
    assert "colour" in result.stdout
    assert "training" in result.stderr
    assert "epoch 3/3" in result.stderr
    rows = {
        line.split("  ")[0]: [word for word in line.split() if word[0].isdigit()]
        for line in result.stdout.splitlines()
        if line.startswith(("this model", "features alone", "GCN, 5", "constant"))
    }
    assert len(rows) == 4
    scores = json.loads((out / "scores.json").read_text())
    assert rows["this model"][0] == f"{scores['test']['accuracy']:.4f}"
    low, high = map(float, rows["this model"][1:3])
    assert low <= float(rows["this model"][0]) <= high
    assert not (out / "runs").exists()


def test_predictions_have_ids_probabilities_and_what_is_known(fitted, tables):
    rows = read_table(fitted[0] / "predictions.csv")
    assert [row["id"] for row in rows] == [f"n{i}" for i in range(120)]
    assert {row["prediction"] for row in rows} == {"left", "right"}
    assert [row["known"] for row in rows] == [row["side"] for row in read_table(tables[0])]
    for row in rows:
        both = float(row["probability of left"]), float(row["probability of right"])
        assert sum(both) == pytest.approx(1)
        assert float(row["probability"]) == max(both)


def test_predict_for_the_same_tables_gives_the_same_bytes(fitted, tables, tmp_path):
    own, given = tmp_path / "own.csv", tmp_path / "given.csv"
    assert run("predict", fitted[0], "--out", own).exit_code == 0
    assert own.read_bytes() == (fitted[0] / "predictions.csv").read_bytes()
    result = run("predict", fitted[0], *tables[:2], "--out", given)
    assert "120 predictions written" in result.stdout
    assert given.read_bytes() == own.read_bytes()


def test_new_nodes_without_the_target_are_predicted(fitted, tmp_path):
    columns = {"name": ["x", "y"], "a": [2.5, -2.0], "b": [0.0, 0.1], "colour": ["red", "pink"]}
    nodes = write_table(tmp_path / "new.csv", columns)
    edges = write_table(tmp_path / "new_edges.csv", {"u": ["x"], "v": ["y"]})
    result = run("predict", fitted[0], nodes, edges, "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in read_table(tmp_path / "p.csv")] == ["x", "y"]
    assert "colour" in result.stderr  # a category that was not there


def test_evaluate_on_the_answers_and_on_the_held_out_rows(fitted, tables):
    shown = run("evaluate", fitted[0], tables[2], tables[1]).stdout
    truth = [row["side"] for row in read_table(tables[2])]
    found = [row["prediction"] for row in read_table(fitted[0] / "predictions.csv")]
    accuracy = np.mean([a == b for a, b in zip(truth, found, strict=True)])
    assert f"{accuracy:.4f}" in shown
    assert "120 nodes with a target" in shown
    own = run("evaluate", fitted[0]).stdout
    scores = json.loads((fitted[0] / "scores.json").read_text())
    assert f"{scores['test']['log_loss']:.4f}" in own


def test_explain_shows_distances_and_nodes_and_draws(fitted, tmp_path):
    picture = tmp_path / "why.png"
    result = run("explain", fitted[0], "--node", "n3", "--out", picture)
    assert result.exit_code == 0, result.output
    assert "side = " in result.stdout
    assert "n3" in result.stdout
    shares = [
        float(line.split()[-2])
        for line in result.stdout.split("node")[0].splitlines()
        if line.rstrip().endswith("%")
    ]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_numbers_with_a_time_column_are_regression(tables, tmp_path):
    rows = read_table(tables[0])
    columns = {k: [row[k] for row in rows] for k in ("name", "b", "colour")}
    columns["price"] = [f"{float(row['a']):.5f}" for row in rows]
    columns["day"] = list(range(120))
    nodes = write_table(tmp_path / "n.csv", columns)
    options = ("--target", "price", "--time", "day", "--directed", "--model", "mlp", *QUICK)
    result = run("fit", nodes, tables[1], *options, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert "r2" in result.stdout
    assert "by the column of times" in (tmp_path / "m" / "README.md").read_text()
    # Without the column of times, which a prediction does not need.
    del columns["day"], columns["price"]
    nodes = write_table(tmp_path / "later.csv", columns)
    assert (
        run("predict", tmp_path / "m", nodes, tables[1], "--out", tmp_path / "p.csv").exit_code == 0
    )
    assert len(read_table(tmp_path / "p.csv")) == 120


def test_graphs_are_predicted_where_there_is_a_table_of_them(tmp_path):
    count = 24
    atoms = {
        "molecule": [m for m in range(count) for _ in range(3)],
        "id": [0, 1, 2] * count,
        "mass": [float(m % 2 + i) for m in range(count) for i in range(3)],
    }
    bonds = {"molecule": list(range(count)), "source": [0] * count, "target": [1] * count}
    soluble = {"molecule": list(range(count)), "soluble": ["yes", "no"] * (count // 2)}
    paths = [
        write_table(tmp_path / f"{name}.csv", table)
        for name, table in (("atoms", atoms), ("bonds", bonds), ("molecules", soluble))
    ]
    options = ("--graph", "molecule", "--target", "soluble", "--undirected", "--model", "mlp")
    out = tmp_path / "m"
    result = run("fit", *paths[:2], "--graphs", paths[2], *options, *QUICK, "--out", out)
    assert result.exit_code == 0, result.output
    assert len(read_table(out / "predictions.csv")) == count
    assert run("predict", out, *paths[:2], "--out", tmp_path / "p.csv").exit_code == 0
    rows = read_table(tmp_path / "p.csv")
    kept = read_table(out / "predictions.csv")
    assert [row["probability"] for row in rows] == [row["probability"] for row in kept]
    assert "known" not in rows[0]


def refused(*arguments, monkeypatch, capsys):
    """The message of the program itself, which ends with the exit code 2 and has no traceback."""
    monkeypatch.setattr(sys, "argv", ["adgn", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    message = capsys.readouterr().err
    assert stopped.value.code == 2, message
    assert "Traceback" not in message
    return message


def test_wrong_input_is_one_message_and_exit_code_2(tables, fitted, tmp_path, monkeypatch, capsys):
    nodes, edges, _ = tables
    out = ("--out", tmp_path / "m")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    unknown = write_table(tmp_path / "unknown.csv", {"u": ["n1"], "v": ["nobody"]})
    one = write_table(tmp_path / "one.csv", {"name": ["n1", "n2"], "side": ["a", "a"]})
    other = write_table(tmp_path / "other.csv", {"name": ["n1", "n2"], "price": [1, 2]})
    few = write_table(tmp_path / "few.csv", {"u": ["n1"], "v": ["n2"]})
    for words, *arguments in (
        ("--target", "fit", nodes, edges),
        ("sied", "fit", nodes, edges, "--target", "sied", *out),
        ("missing.csv", "fit", tmp_path / "missing.csv", edges, "--target", "side", *out),
        ("without a table of edges", "fit", nodes, "--target", "side", *out),
        ("empty.csv", "fit", empty, edges, "--target", "side", *out),
        ("nobody", "fit", nodes, unknown, "--target", "side", *out),
        ("one.csv", "fit", one, few, "--target", "side", *out),
        ("no-such", "fit", nodes, edges, "--target", "side", "--model", "no-such", *out),
        ("minutes", "fit", nodes, edges, "--target", "side", "--minutes", "0", *out),
        ("'a'", "predict", fitted[0], other, few, "--out", tmp_path / "p.csv"),
        (".csv or .parquet", "predict", fitted[0], "--out", tmp_path / "p.txt"),
        ("no row", "evaluate", fitted[0], *new_people(tmp_path)),
        ("nobody", "explain", fitted[0], "--node", "nobody"),
        ("no model folder", "explain", tmp_path, "--node", "n1"),
    ):
        message = refused(*arguments, monkeypatch=monkeypatch, capsys=capsys)
        assert words in message, (arguments, message)
    assert not (tmp_path / "p.csv").exists()


def new_people(folder):
    columns = {"name": ["x", "y"], "a": [2.5, -2.0], "b": [0.0, 0.1], "colour": ["red", "blue"]}
    nodes = write_table(folder / "people2.csv", {**columns, "side": ["", ""]})
    return nodes, write_table(folder / "knows2.csv", {"u": ["x"], "v": ["y"]})


def test_a_run_takes_no_tables(tables, tmp_path, monkeypatch, capsys):
    message = refused("evaluate", tmp_path, *tables[:2], monkeypatch=monkeypatch, capsys=capsys)
    assert "only models take tables" in " ".join(message.replace("│", " ").split())


def test_the_command_is_kept_as_it_was_typed(fitted, tables):
    kept = json.loads((fitted[0] / "fit.json").read_text())
    words = ["adgn", "fit", *map(str, tables[:2]), "--target", "side", "--undirected"]
    assert kept["command"].startswith(" ".join(words[:6]))
    assert "--undirected" in kept["command"]
    assert "loop.max_epochs=3" in kept["command"]
    assert not kept["nodes"].startswith("/")


def test_a_folder_with_something_else_is_left_alone(tables, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "README.md").write_text("mine")
    result = run("fit", *tables[:2], "--target", "side", "--out", tmp_path, *QUICK)
    assert result.exit_code == 2
    assert "give a new or an empty folder" in result.stderr
    assert (tmp_path / "README.md").read_text() == "mine"
    assert (tmp_path / "runs").is_dir()
