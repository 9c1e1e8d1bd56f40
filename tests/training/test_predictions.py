import csv

import pytest
import torch
from safetensors.torch import load_file
from torch_geometric.data import Data

from adgn.data import GraphPropertyDataset, GraphTransfer, TreeNeighborsMatch, load
from adgn.training import (
    ConfigError,
    FullGraph,
    TaskData,
    predict,
    register_task,
    train,
    unregister_task,
)
from adgn.training.predictions import csv_text, write_predictions

SMALL = {"min_nodes": 6, "train": (2, 4), "val": (1, 3), "test": (1, 3)}


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(tiny, tmp_path):
    return train(tiny, run_dir=tmp_path / "run")


@pytest.fixture
def one_graph():
    """A task over one graph of seven nodes, of which some belong to no split and some are unknown.

    It is read from its largest component, so that a node's number is not its row.
    """
    data = Data(x=torch.eye(7), edge_index=torch.tensor([[1, 2, 4, 5], [2, 4, 5, 6]]))
    kept = torch.tensor([1, 2, 4, 5, 6])
    number = torch.full((7,), -1)
    number[kept] = torch.arange(5)
    y, edges = torch.tensor([0, 1, 2, -1, 0]), number[data.edge_index]
    nodes = {"train": [0, 1, 2], "test": [3, 4]}

    @register_task(
        "one-graph",
        objective="classification",
        defaults={"stopping": {"split": "train"}},
    )
    def build(config, device, progress):
        sources = {
            split: FullGraph(data.x[kept], edges, y, torch.tensor(rows), node_id=kept)
            for split, rows in nodes.items()
        }
        return TaskData(7, 3, "node", sources["train"], sources, {})

    yield "one-graph"
    unregister_task("one-graph")


def test_nodes_of_one_graph_have_their_numbers_classes_and_probabilities(one_graph, tmp_path):
    done = train(one_graph, loop={"max_epochs": 2}, run_dir=tmp_path / "run")
    assert write_predictions(done.run_dir, tmp_path / "out.csv") == 5
    rows = read(tmp_path / "out.csv")
    classes = [f"probability_{number}" for number in range(3)]
    assert list(rows[0]) == ["split", "node", "prediction", "target", *classes]
    assert [(row["split"], row["node"]) for row in rows] == [
        *(("train", "1"), ("train", "2"), ("train", "4")),
        *(("test", "5"), ("test", "6")),
    ]
    assert [row["target"] for row in rows] == ["0", "1", "2", "", "0"]  # one is unknown
    for row in rows:
        probabilities = [float(row[name]) for name in classes]
        assert sum(probabilities) == pytest.approx(1)
        assert int(row["prediction"]) == max(range(3), key=probabilities.__getitem__)
    model, x = done.model.eval(), torch.eye(7)[[1, 2, 4, 5, 6]]
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    expected = model(x, edges).softmax(dim=1)
    written = torch.tensor([[float(row[name]) for name in classes] for row in rows])
    torch.testing.assert_close(written, expected)


def test_numbers_are_those_of_the_data_set_as_it_is_loaded(data_root, tmp_path):
    task = {"name": "texas", "root": str(data_root)}
    train({"task": task}, loop={"max_epochs": 1}, run_dir=tmp_path / "run")
    write_predictions(tmp_path / "run", tmp_path / "out.csv")
    rows, y = read(tmp_path / "out.csv"), load("texas", data_root).y
    assert sorted(int(row["node"]) for row in rows) == list(range(183))
    assert all(int(row["target"]) == int(y[int(row["node"])]) for row in rows)


@pytest.mark.parametrize("target", ["sssp", "diameter"])
def test_of_many_graphs_a_row_has_graph_and_node(target, tmp_path):
    task = {"name": target, "root": str(tmp_path), **SMALL}
    train({"task": task}, loop={"max_epochs": 1}, run_dir=tmp_path / "run")
    write_predictions(tmp_path / "run", tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    ids = ["graph", "node"] if target == "sssp" else ["graph"]
    assert list(rows[0]) == ["split", *ids, "prediction", "target"]
    for split in ("train", "val", "test"):
        graphs = GraphPropertyDataset(tmp_path, split, target, **SMALL)
        expected = [
            (str(number), str(node), value)
            for number, graph in enumerate(graphs)
            for node, value in enumerate(graph.y.view(-1).tolist())
        ]
        mine = [row for row in rows if row["split"] == split]
        found = [(row["graph"], row.get("node", "0"), float(row["target"])) for row in mine]
        assert found == expected


def test_graphs_are_counted_over_all_batches(tiny, tmp_path):
    tiny["loop"]["batch_size"] = 4  # twelve train graphs in three batches
    train(tiny, run_dir=tmp_path / "run")
    graphs, nodes = [], []
    for _, batch in predict(tmp_path / "run", ["train"]):
        graphs += batch["graph"].tolist()
        nodes += batch["node"].tolist()
    assert graphs == list(range(12))
    # The answer is read at the far end of the line.
    readout = GraphTransfer("line", 2, "train", num_graphs=12).packed.readout
    assert nodes == readout.tolist()


def test_a_class_per_graph_has_the_node_where_it_is_read(tmp_path):
    task = {"name": "tree-neighbors-match", "radius": 2}
    loop = {"max_epochs": 1, "passes_per_epoch": 1}
    train({"task": task}, loop=loop, run_dir=tmp_path / "run")
    ((_, batch),) = predict(tmp_path / "run", ["test"])
    packed = TreeNeighborsMatch(2, "test", seed=11).packed
    assert batch["graph"].tolist() == list(range(len(packed)))
    assert batch["node"].tolist() == packed.readout.tolist()
    assert batch["target"].tolist() == packed.y.tolist()
    torch.testing.assert_close(batch["probability"], batch["output"].double().softmax(dim=1))
    assert batch["probability"].argmax(dim=1).equal(batch["prediction"])


def test_csv_has_a_row_per_prediction(run, tmp_path):
    count = write_predictions(run.run_dir, tmp_path / "out.csv")
    rows = read(tmp_path / "out.csv")
    assert count == len(rows) == 12 + 6 + 6
    errors = [
        (float(row["prediction"]) - float(row["target"])) ** 2
        for row in rows
        if row["split"] == "test"
    ]
    assert sum(errors) / 6 == pytest.approx(run.scores["test"]["mse"], rel=1e-5)


def test_safetensors_has_outputs_too(run, tmp_path):
    write_predictions(run.run_dir, tmp_path / "out.safetensors")
    tensors = load_file(tmp_path / "out.safetensors")
    assert tensors["test.output"].shape == (6, 1)
    assert torch.equal(tensors["val.prediction"], tensors["val.output"])
    assert tensors["val.graph"].tolist() == list(range(6))


def test_several_values_have_a_column_each():
    columns = {
        "node": torch.tensor([3]),
        "prediction": torch.tensor([[1.0, 2.0]]),
        "target": torch.tensor([[0.5, 0.25]]),
    }
    expected = "split,node,prediction_0,prediction_1,target_0,target_1\nval,3,1.0,2.0,0.5,0.25\n"
    assert csv_text({"val": columns}) == expected


def test_wrong_files_are_refused_before_any_work(tmp_path):
    with pytest.raises(ConfigError, match=r"no known ending; use .csv or .safetensors"):
        write_predictions(tmp_path, tmp_path / "out.parquet")
    with pytest.raises(ConfigError, match="does not exist"):
        write_predictions(tmp_path, tmp_path / "nowhere" / "out.csv")
