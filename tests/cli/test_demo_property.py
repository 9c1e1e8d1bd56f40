import re

from adgn.cli import demo_property
from adgn.cli.demo_property import property_demo


def test_demo_prints_both_models_beside_the_constant_and_can_be_repeated(
    tmp_path, monkeypatch, capsys
):
    smaller = {
        "task": {"min_nodes": 6, "train": [2, 8], "val": [1, 4], "test": [1, 4]},
        "model": {"hidden_channels": 4, "num_layers": 2},
        "loop": {"max_epochs": 2, "batch_size": 8},
    }
    monkeypatch.setattr(demo_property, "DEMO_SETTINGS", smaller)
    property_demo(tmp_path)
    first = capsys.readouterr().out
    for task in ("diameter", "sssp"):
        (line,) = [line for line in first.splitlines() if line.startswith(task)]
        assert len(re.findall(r"-?\d+\.\d{3}", line)) == 3
        for model in ("adgn", "gcn"):
            assert (tmp_path / f"{task}-{model}" / "result.json").exists()
    property_demo(tmp_path)
    assert capsys.readouterr().out == first
