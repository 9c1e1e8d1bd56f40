"""A user's tables through the command line: fit, predict, evaluate, explain; wrong input."""

import csv
import json
import re
import shutil
import sys

import networkx
import numpy as np
import pytest
from typer.testing import CliRunner

import adgn
from adgn.cli.app import app, main
from adgn.training.quality import METRICS
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


FAST = ("--model", "mlp", *QUICK)


def codes(folder, count=40):
    """Nodes whose codes and classes look like numbers in part, and edges without usual names."""
    nodes = {
        "who": [f"p{i}" for i in range(count)],
        "code": ["007", "x8"] * (count // 2),
        "side": ["01", "b"] * (count // 2),
    }
    edges = {"a": nodes["who"][1:], "b": nodes["who"][:-1], "kind": ["03", "c"] * (count // 2 - 1)}
    edges["kind"].append("03")
    return (
        write_table(folder / "nodes.csv", nodes),
        write_table(folder / "edges.csv", edges),
    )


def test_what_was_decided_about_tables_is_kept_for_new_ones(tmp_path):
    out = tmp_path / "m"
    fit = run("fit", *codes(tmp_path), "--target", "side", "--directed", *FAST, "--out", out)
    assert fit.exit_code == 0, fit.output
    # Columns in another order, an "id" that is none, and all that is text looks like numbers.
    columns = {"code": ["007", "NA"], "id": [5, 6], "who": [1, 2], "side": ["01", ""]}
    nodes = write_table(tmp_path / "new.csv", columns)
    edges = write_table(tmp_path / "new_edges.csv", {"kind": ["03"], "b": [2], "a": [1]})
    result = run("predict", out, nodes, edges, "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in read_table(tmp_path / "p.csv")] == ["1", "2"]
    assert "never seen" not in result.stderr.replace(
        "1 column(s) that the model has never seen", ""
    )
    assert "column 'code': 1 missing value(s)" in result.stderr
    assert run("evaluate", out, nodes, edges).exit_code == 0
    explained = run("explain", out, nodes, edges, "--node", "1")
    assert explained.exit_code == 0, explained.output
    assert "column 'code': 1 missing value(s)" in explained.stderr


def write_graphs(folder, names, sides, targets=True):
    """A folder with a pair of tables for each graph; rings have one edge more than lines."""
    folder.mkdir()
    for number, name in enumerate(names):
        nodes = {"id": [1, 2, 3], "mass": [number % 2, 1.5, 2]}
        write_table(folder / f"{name}_nodes.csv", nodes)
        ends = {"source": [1, 2, 3][: 2 + number % 2], "target": [2, 3, 1][: 2 + number % 2]}
        write_table(folder / f"{name}_edges.csv", ends)
    if targets:
        write_table(folder / "targets.csv", {"name": names, "shape": sides})
    return folder


def test_a_folder_of_graphs_and_a_new_one_without_targets(tmp_path):
    names = [f"g{i:02}" for i in range(24)]
    folder = write_graphs(tmp_path / "old", names, ["line", "ring"] * 12)
    out = tmp_path / "m"
    result = run("fit", folder, "--target", "shape", "--undirected", *FAST, "--out", out)
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in read_table(out / "predictions.csv")] == names
    new = write_graphs(tmp_path / "new", ["u", "v", "w"], None, targets=False)
    predicted = run("predict", out, new, "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 0, predicted.output
    assert [row["id"] for row in read_table(tmp_path / "p.csv")] == ["u", "v", "w"]
    assert run("predict", out, "--out", tmp_path / "own.csv").exit_code == 0
    assert (tmp_path / "own.csv").read_bytes() == (out / "predictions.csv").read_bytes()
    assert "shape = " in run("explain", out, new, "--node", "v").stdout


def test_a_graphml_file_and_a_new_one_without_the_target(tmp_path):
    club = networkx.karate_club_graph()
    networkx.write_graphml(club, tmp_path / "club.graphml")
    out = tmp_path / "m"
    result = run("fit", tmp_path / "club.graphml", "--target", "club", *FAST, "--out", out)
    assert result.exit_code == 0, result.output
    assert len(read_table(out / "predictions.csv")) == 34
    for _, attributes in club.nodes(data=True):
        del attributes["club"]
    networkx.write_graphml(club, tmp_path / "new.graphml")
    predicted = run("predict", out, tmp_path / "new.graphml", "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 0, predicted.output
    assert len(read_table(tmp_path / "p.csv")) == 34


def prices(folder, count=40, **more):
    generator = np.random.default_rng(0)
    columns = {"id": list(range(count)), "size": generator.normal(size=count)}
    columns["price"] = [f"{3 * v + 1:.4f}" for v in columns["size"]]
    nodes = write_table(folder / "homes.csv", {**columns, **more})
    return nodes, write_table(folder / "near.csv", {"source": range(39), "target": range(1, 40)})


def test_one_held_out_row_of_numbers(tmp_path):
    tables = prices(tmp_path)
    options = ("--target", "price", "--undirected", "--test-size", "0.01", *FAST)
    result = run("fit", *tables, *options, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert "on 1 nodes that no model has seen" in result.stdout
    assert "is not defined on the 1 node(s) held out" in (tmp_path / "m/report.html").read_text()


def test_rows_without_a_part_are_counted_and_no_held_out_row_is_told(tmp_path):
    split = ["train"] * 20 + ["valid"] * 10 + [""] * 10
    tables = prices(tmp_path, part=split)
    options = ("--target", "price", "--directed", "--split-column", "part", *FAST)
    result = run("fit", *tables, *options, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert "is empty for 10 of 40 labelled nodes" in result.stdout
    assert "no rows were held out; on the rows that validated" in result.stdout


def test_a_short_time_is_kept_or_told(tmp_path):
    options = ("--target", "price", "--directed", "--minutes", "0.0001", *QUICK)
    result = run("fit", *prices(tmp_path), *options, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert "more than --minutes 0.0001 allow" in result.stdout
    assert len(json.loads((tmp_path / "m" / "scores.json").read_text())["tried"]) == 1


def test_a_node_of_many_graphs_is_named_with_its_graph(tmp_path):
    count = 12
    rooms = {
        "house": [h for h in range(count) for _ in range(2)],
        "room": ["kitchen", "hall"] * count,
        "size": [float(h % 5 + r) for h in range(count) for r in range(2)],
        "price": [float(h % 5 + 2 * r) for h in range(count) for r in range(2)],
    }
    doors = {"house": range(count), "source": ["kitchen"] * count, "target": ["hall"] * count}
    tables = (write_table(tmp_path / "rooms.csv", rooms), write_table(tmp_path / "d.csv", doors))
    options = ("--id", "room", "--graph", "house", "--target", "price", "--undirected", *FAST)
    out = tmp_path / "m"
    result = run("fit", *tables, *options, "--out", out)
    assert result.exit_code == 0, result.output
    page = (out / "report.html").read_text()
    assert re.search(r'<th scope="row">\d+/(hall|kitchen)</th>', page)
    several = run("explain", out, "--node", "hall")
    assert several.exit_code == 2
    assert "name the graph too: '0/hall'" in several.stderr
    assert run("explain", out, "--node", "7/hall").stdout.startswith("7/hall: price = ")
    assert (out / "explain-7_hall.png").is_file()


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
    side = ("--target", "side", *out)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    unknown = write_table(tmp_path / "unknown.csv", {"u": ["n1"], "v": ["nobody"]})
    one = write_table(tmp_path / "one.csv", {"name": ["n1", "n2"], "side": ["a", "a"]})
    other = write_table(tmp_path / "other.csv", {"name": ["n1", "n2"], "price": [1, 2]})
    few = write_table(tmp_path / "few.csv", {"u": ["n1"], "v": ["n2"]})
    nameless = write_table(tmp_path / "nameless.csv", {"who": ["n1", "n2"], "a": [1, 2]})
    people = {key: [row[key] for row in read_table(nodes)] for key in ("name", "side", "a")}
    texts = [f"{n % 28 + 1:02}.05.{2024 - n % 3}" for n in range(120)]
    dated = write_table(tmp_path / "dated.csv", {**people, "joined": texts})
    halves = (
        write_table(tmp_path / "halves.csv", {**people, "half": ["a", "b"] * 60}),
        edges,
    )
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
        ("`adgn fit`", "predict", tmp_path, "--out", tmp_path / "p.csv"),
        ("`adgn fit`", "evaluate", tmp_path / "nowhere"),
        # Before the files, which are not there, are read.
        (
            "--model no-such is not",
            "fit",
            "no.csv",
            "no2.csv",
            "--target",
            "a",
            "--model",
            "no-such",
        ),
        ("--metric f is not", "fit", "no.csv", "no2.csv", "--target", "a", "--metric", "f"),
        ("--ignore joined", "fit", dated, edges, "--target", "side", *out),
        ("such as '01.05.2024'", "fit", dated, edges, "--target", "side", "--time", "joined", *out),
        ("at least 3, hold nothing out (--test-size 0)", "fit", *halves, "--group", "half", *side),
        ("no column 'name', the id column", "predict", fitted[0], nameless, few, "--out", "p.csv"),
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


def test_a_model_saved_over_it_takes_the_place_of_all_of_it(fitted, tables, tmp_path):
    folder = tmp_path / "m"
    shutil.copytree(fitted[0], folder)
    adgn.load(folder).save(folder)
    assert {file.name for file in folder.iterdir()} == {
        *("README.md", "config.json", "model.safetensors", "scores.json")
    }
    result = run("predict", folder, *tables[:2], "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "p.csv").read_bytes() == (fitted[0] / "predictions.csv").read_bytes()
    missing = run("predict", folder, "--out", tmp_path / "p.csv")
    assert missing.exit_code == 2
    assert "give NODES and EDGES" in missing.stderr


def test_the_help_names_all_metrics():
    shown = " ".join(run("fit", "--help").output.replace("│", " ").split())
    for names in METRICS.values():
        assert all(name in shown for name in names)


def test_transforms_are_applied_and_predictions_repeat_them(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "data"))
    named = ("--model", "gcn", "--transform", "undirected", "--transform", "digl:k=4", *QUICK)
    result = run("fit", *tables[:2], "--target", "side", *named, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert "weighted edges by diffusion" in result.stdout
    predicted = run("predict", tmp_path / "m", *tables[:2], "--out", tmp_path / "p.csv")
    assert predicted.exit_code == 0, predicted.output
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "m" / "predictions.csv").read_bytes()


@pytest.mark.parametrize(
    ("transform", "message"),
    [("diggl", "Did you mean 'digl'?"), ("largest_component", "leaves nodes out")],
)
def test_wrong_transforms_are_told_before_files_are_read(transform, message, tmp_path):
    missing = (tmp_path / "nodes.csv", tmp_path / "edges.csv")
    result = run("fit", *missing, "--target", "y", "--transform", transform)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
