import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import adgn
from adgn import GraphRegressor, NodeClassifier
from adgn.estimators import ModelFolderError
from tests import warm
from tests.estimators.graphs import many_graphs, two_groups

QUICK = {"loop": {"max_epochs": 10}}
PROGRAM = Path(__file__).parents[1] / "helpers" / "predicts_from_folder.py"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    graph, _ = two_groups()
    model = NodeClassifier(settings=QUICK, test_size=0.2, random_state=3).fit(graph)
    return model, graph, model.save(tmp_path_factory.mktemp("model"))


def test_another_process_gives_the_same_bytes(saved, tmp_path):
    model, graph, folder = saved
    np.savez(tmp_path / "graph.npz", x=graph.x.numpy(), edges=graph.edge_index.numpy())
    done = warm.run(warm.script(PROGRAM, folder, tmp_path / "graph.npz", tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes() == model.predict_proba().tobytes()


def test_a_loaded_model_knows_what_the_saved_one_knew(saved):
    model, graph, folder = saved
    again = adgn.load(folder)
    assert type(again) is NodeClassifier
    assert again.get_params() == {**model.get_params(), "graph": None}
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.scores() == model.scores()
    assert again.tried() == model.tried()
    assert again.score(graph) == model.score(graph)
    assert again.explain(5, graph).by_distance() == model.explain(5).by_distance()
    with pytest.raises(TypeError, match="does not have the graph"):
        again.predict()


def test_folders_of_before_say_both_for_undirected(tmp_path):
    graph, _ = two_groups()
    model = NodeClassifier(settings=QUICK, direction="undirected", random_state=3).fit(graph)
    folder = model.save(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())

    def earlier(part):
        if isinstance(part, dict):
            return {key: earlier(value) for key, value in part.items()}
        if isinstance(part, list):
            return [earlier(value) for value in part]
        return "both" if part == "undirected" else part

    assert earlier(config) != config
    (folder / "config.json").write_text(json.dumps(earlier(config)))
    again = adgn.load(folder)
    assert again.direction == "undirected"
    assert again.predict_proba(graph).tobytes() == model.predict_proba().tobytes()


def test_a_score_that_is_undefined_stays_a_number(saved, tmp_path):
    _, _, folder = saved
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    scores = json.loads((copy / "scores.json").read_text())
    scores["test"]["roc_auc"] = None  # as it is written where one class was held out
    (copy / "scores.json").write_text(json.dumps(scores))
    assert np.isnan(adgn.load(copy).scores()["roc_auc"])


def test_a_loaded_model_is_saved_again_as_it_is(saved, tmp_path):
    _, _, folder = saved
    adgn.load(folder).save(tmp_path / "again")
    for file in folder.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_the_folder_has_weights_settings_and_a_card_and_no_pickle(saved):
    _, _, folder = saved
    assert {file.name for file in folder.iterdir()} == {
        *("README.md", "config.json", "model.safetensors", "scores.json")
    }
    assert load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    assert config["estimator"] == "NodeClassifier"
    assert set(config["versions"]) >= {"adgn", "torch"}
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: adgn\n")
    assert "| accuracy |" in card
    assert "120 nodes" in card


def test_values_of_whole_graphs(tmp_path):
    graphs = many_graphs(values=True)
    model = GraphRegressor(settings=QUICK).fit(graphs)
    again = adgn.load(model.save(tmp_path))
    assert (again.predict(graphs) == model.predict()).all()


def test_a_folder_without_a_model_is_told(tmp_path):
    with pytest.raises(ModelFolderError, match=r"it has no config\.json"):
        adgn.load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "scores.json", "model.safetensors"])
def test_damage_is_told(saved, tmp_path, name):
    _, _, folder = saved
    for file in folder.iterdir():
        content = file.read_bytes()
        (tmp_path / file.name).write_bytes(content[:-20] if file.name == name else content)
    with pytest.raises(ModelFolderError, match="damaged"):
        adgn.load(tmp_path)


def test_a_newer_format_is_told(saved, tmp_path):
    _, _, folder = saved
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "format": 99}))
    with pytest.raises(ModelFolderError, match="newer adgn"):
        adgn.load(tmp_path)


def test_a_place_that_cannot_be_written_is_told(saved, tmp_path):
    model, _, _ = saved
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFolderError, match="cannot be written"):
        model.save(tmp_path / "file")


def test_types_of_numpy_and_weights_by_number_are_kept(tmp_path):
    graph, labels = two_groups(unlabelled=0)
    graph = graph.with_target((labels == "left").astype(int))
    settings = {"loop": {"max_epochs": np.int64(3)}, "optimizer": {"lr": np.float32(0.5)}}
    model = NodeClassifier(
        model="mlp",
        model_options={"dropout": np.float32(0.25)},
        settings=settings,
        class_weight={np.int64(0): np.float32(2.0), 1: 1},
        validation_size=np.float32(0.25),
        random_state=np.int64(7),
    ).fit(graph)
    again = adgn.load(model.save(tmp_path))
    assert again.get_params() == {**model.get_params(), "graph": None}
    assert again.fit(graph).predict_proba().tolist() == model.predict_proba().tolist()


def test_what_was_about_another_model_does_not_stay(saved, tmp_path):
    for name in ("fit.json", "predictions.csv", "report.html", "explain-n1.png", "mine.txt"):
        (tmp_path / name).write_text("")
    saved[0].save(tmp_path)
    expected = {"README.md", "config.json", "model.safetensors", "scores.json", "mine.txt"}
    assert {file.name for file in tmp_path.iterdir()} == expected


def test_how_new_data_is_read_is_kept(tmp_path):
    nodes = {
        "who": [f"n{n}" for n in range(24)],
        "code": ["007", "x1"] * 12,
        "side": ["01", "b"] * 12,
    }
    edges = {"a": nodes["who"][1:], "b": nodes["who"][:-1], "weight": [1.0, 2.0] * 11 + [1.0]}
    graph = adgn.Graph.from_tables(nodes, edges, target_column="side", directed=False)
    model = NodeClassifier(model="mlp", settings=QUICK).fit(graph)
    reading = adgn.load(model.save(tmp_path)).reading_
    assert reading == model.reading_
    kept = {"id": "who", "source": "a", "target": "b", "weight": "weight", "directed": False}
    assert reading.items() >= {**kept, "level": "node"}.items()
    assert reading["categories"] == ["code", "side"]
    new = adgn.Graph.from_tables({"who": [1], "code": ["007"]}, None, **reading)
    assert len(adgn.load(tmp_path).predict(new)) == 1
