from adgn.training import train


def test_trees_learn_to_answer():
    result = train(
        "tree-neighbors-match",
        task={"radius": 2, "permutations": 8},
        optimizer={"lr": 0.01},
        loop={"max_epochs": 6, "passes_per_epoch": 50},
        stopping={"target": 0.9},
    )
    assert result.scores["train"]["accuracy"] >= 0.9
    assert result.stopped == "target"
    assert result.constant["accuracy"] <= 0.5
    assert result.published.mean == 1.0
    assert set(result.scores) == {"train", "test"}
