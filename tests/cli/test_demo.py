import re

from typer.testing import CliRunner

from adgn.cli import demo
from adgn.cli.demo import app, property_demo


def test_transfer_prints_a_table_and_draws_a_picture(tmp_path):
    result = CliRunner().invoke(
        app,
        ["transfer", "--out", str(tmp_path), "--epochs", "1", "--distance", "2", "--distance", "3"],
    )
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert sum(line[:1] == ["GCN,"] for line in lines) == 2  # that with residual and norm
    rows = [line[:3] for line in lines if line[:1] in (["A-DGN"], ["GCN"])]
    assert rows == [
        [model, distance, layers]
        for distance, layers in (("2", "3"), ("3", "4"))
        for model in ("A-DGN", "GCN")
    ]
    assert (tmp_path / "transfer.png").read_bytes().startswith(b"\x89PNG")


def test_a_place_that_cannot_be_written_is_told_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("adgn.experiments.transfer.run_transfer", None)
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["transfer", "--out", str(tmp_path / "file" / "below")])
    assert result.exit_code == 2
    said = " ".join(result.output.replace("│", " ").split())  # lines are broken where they end
    assert "--out" in said
    assert "Not a directory" in said


def test_demo_prints_every_model_beside_the_constant_and_can_be_repeated(
    tmp_path, monkeypatch, capsys
):
    smaller = {
        "task": {"min_nodes": 6, "train": [2, 8], "val": [1, 4], "test": [1, 4]},
        "model": {"hidden_channels": 4, "num_layers": 2},
        "loop": {"max_epochs": 2, "batch_size": 8},
    }
    monkeypatch.setattr(demo, "DEMO_SETTINGS", smaller)
    property_demo(tmp_path)
    first = capsys.readouterr().out
    for task in ("diameter", "sssp"):
        (line,) = [line for line in first.splitlines() if line.startswith(task)]
        assert len(re.findall(r"-?\d+\.\d{3}", line)) == 4
        for model in ("adgn", "gcn-residual", "gcn"):
            assert (tmp_path / f"{task}-{model}" / "result.json").exists()
    config = (tmp_path / "sssp-gcn-residual" / "config.toml").read_text()
    assert "residual = true" in config
    assert 'norm = "batch"' in config
    property_demo(tmp_path)
    assert capsys.readouterr().out == first


def test_own_fits_the_shipped_tables_and_says_where_everything_is(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "OWN_SETTINGS", {"loop": {"max_epochs": 1}})
    result = CliRunner().invoke(app, ["own", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    said = result.stdout.splitlines()
    assert f"page: {tmp_path / 'own' / 'report.html'}" in said
    (line,) = [line for line in said if line.startswith("predictions: ")]
    assert str(tmp_path / "own" / "predictions.csv") in line
    page = (tmp_path / "own" / "report.html").read_text()
    (command,) = [line for line in said if line.startswith("adgn fit")]
    assert command in page
    rows = (tmp_path / "own" / "predictions.csv").read_text().splitlines()
    assert len(rows) == 1 + 2708
