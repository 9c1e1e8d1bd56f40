from adgn.training import train


def test_transfer_beats_the_constant():
    result = train(
        "graph-transfer",
        task={"distance": 2, "train": 100, "val": 20, "test": 50},
        model={"hidden_channels": 8, "epsilon": 0.5},
        optimizer={"lr": 0.02},
        loop={"max_epochs": 40, "batch_size": 25},
    )
    assert result.score < result.constant["log10_mse"] - 1.0
