import pytest

from adgn.nn import (
    GraphNetwork,
    available_models,
    build_model,
    model_spec,
    register_model,
    unregister_model,
)
from adgn.nn.registry import ModelOptions

EXPECTED = {
    "adgn",
    "appnp",
    "cgnn",
    "cheb",
    "dagnn",
    "dgc",
    "egnn",
    "gat",
    "gcn",
    "gcnii",
    "gde",
    "ggnn",
    "gin",
    "gprgnn",
    "grand",
    "graphcon",
    "graphsage",
    "h2gcn",
    "mlp",
    "mpssm",
    "sonar",
    "pairnorm",
    "pathgcn",
    "pdegcn",
    "phdgn",
    "sgc",
    "stable-cheb",
    "swan",
}


def test_available_models():
    assert set(available_models()) >= EXPECTED
    assert available_models() == sorted(available_models())


@pytest.mark.parametrize("name", available_models())
def test_a_spec_is_complete(name):
    spec = model_spec(name)
    assert spec.name == name
    for text in (spec.title, spec.rule, spec.memory, spec.time):
        assert text.strip()
    assert spec.paper.startswith("https://")
    assert issubclass(spec.network, GraphNetwork)
    assert spec.network.__doc__
    options = spec.describe_options()
    assert {option.name for option in options} == set(spec.options.model_fields)
    assert all(option.description for option in options)


def test_a_models_own_options_come_first():
    names = [option.name for option in model_spec("gcnii").describe_options()]
    common = ["encoder", "readout", "dropout", "first_dropout", "train_recurrent", "fully_adjacent"]
    assert names[-6:] == common
    assert "alpha" in names[:-6]


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ValueError, match=r"name='graphsag' is not known. Did you mean 'graphsage'"):
        build_model("graphsag", 3, 4, 2, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 is not valid for adgn: .* greater than 0"),
        ({"epsilon": float("inf")}, "epsilon=inf is not valid for adgn: .* finite"),
        ({"gamma": -1.0}, "gamma=-1.0 is not valid for adgn"),
        ({"bias": 1}, "bias=1 is not valid for adgn: .* boolean"),
        ({"epsilon": "0.1"}, "epsilon='0.1' is not valid for adgn: .* number"),
        ({"dropout": 1.0}, "dropout=1.0 is not valid for adgn: .* less than 1"),
        ({"readout": "linaer"}, "readout='linaer' is not valid for adgn: .*'linear'"),
        ({"edge_dim": 0}, "edge_dim=0 is not valid for adgn"),
    ],
)
def test_a_wrong_value_names_the_option_and_lists_all(options, message):
    with pytest.raises(ValueError, match=rf"{message}.*adgn takes: phi='sum', weight_sharing=True"):
        build_model("adgn", 3, 4, 2, 2, **options)


def test_several_wrong_options_are_all_named():
    with pytest.raises(ValueError, match=r"(?s)alpha=2.0 is not valid.*gcnii has no option 'gama'"):
        build_model("gcnii", 3, 4, 2, 2, alpha=2.0, gama=1)


def test_a_name_is_registered_once():
    decorator = register_model("gcn", options=ModelOptions)
    with pytest.raises(ValueError, match="a model named 'gcn' is registered already"):
        decorator(GraphNetwork)
    assert model_spec("gcn").title == "GCN"


def test_a_model_comes_and_goes():
    before = available_models()
    for _ in range(2):  # the name is free again after the first time
        register_model("identity")(GraphNetwork)
        assert model_spec("identity").title == "identity"
        assert set(available_models()) - set(before) == {"identity"}
        unregister_model("identity")
        assert available_models() == before
        assert not hasattr(GraphNetwork, "spec")  # nor do classes derived from it have one
    with pytest.raises(ValueError, match=r"name='identity' is not known"):
        unregister_model("identity")


def test_a_class_of_two_names_goes_by_the_one_that_is_left():
    class Twice(GraphNetwork):
        pass

    for name in ("first", "second"):
        register_model(name)(Twice)
    assert Twice.spec.name == "first"
    unregister_model("first")
    assert Twice.spec.name == "second"
    unregister_model("second")
    assert not hasattr(Twice, "spec")


def test_configuration_builds_the_same_model():
    model = build_model("gat", 3, 8, 2, 4, level="graph", heads=2)
    assert model.configuration == {
        "name": "gat",
        "in_channels": 3,
        "hidden_channels": 8,
        "out_channels": 2,
        "num_layers": 4,
        "level": "graph",
        "heads": 2,
    }
    assert repr(build_model(**model.configuration)) == repr(model)


@pytest.mark.parametrize(("name", "field"), [("mlp", "0"), ("gcn", "L"), ("grand", "4L")])
def test_receptive_field(name, field):
    assert model_spec(name).receptive_field == field
