import pytest
from hypothesis import given
from hypothesis import strategies as st

from adgn._util.suggestions import did_you_mean, nearest, unknown_name
from adgn.nn import available_models
from adgn.training.config import LoopConfig, ModelConfig, OptimizerConfig


def test_the_nearest_name_is_suggested():
    assert "Did you mean 'gcn'?" in str(unknown_name("phi", "gnc", ["sum", "gcn"]))


def test_no_suggestion_where_nothing_is_near():
    message = str(unknown_name("phi", "transformer", ["sum", "gcn"]))
    assert message == "phi='transformer' is not known. Choose one of: gcn, sum."
    assert did_you_mean(None) == ""


def test_a_name_used_elsewhere_leads_to_the_valid_one():
    message = str(unknown_name("name", "coauthor-cs", ["cs", "cora"], {"coauthor-cs": "cs"}))
    assert "Did you mean 'cs'? Choose one of: cora, cs." in message


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("gnc", "gcn"), ("agdn", "adgn"), ("sage", "graphsage"), ("GCN", "gcn")],
)
def test_models(wrong, meant):
    assert nearest(wrong, available_models()) == meant


@pytest.mark.parametrize(
    ("section", "wrong", "meant"),
    [
        (OptimizerConfig, "learning_rate", "lr"),
        (OptimizerConfig, "wd", "weight_decay"),
        (LoopConfig, "epochs", "max_epochs"),
        (LoopConfig, "batchsize", "batch_size"),
        (ModelConfig, "hidden", "hidden_channels"),
        (ModelConfig, "layers", "num_layers"),
    ],
)
def test_abbreviated_and_written_out_settings(section, wrong, meant):
    assert nearest(wrong, section.model_fields) == meant


@given(st.text(alphabet="abcd_", min_size=4, max_size=12), st.data())
def test_two_swapped_letters_lead_back(name, data):
    at = data.draw(st.integers(0, len(name) - 2))
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    assert nearest(swapped, [name]) == name


@given(st.text(max_size=8), st.lists(st.text(max_size=8), max_size=4))
def test_only_a_choice_is_suggested(value, choices):
    near = nearest(value, choices)
    assert near is None or near in choices


def test_a_long_name_is_cut_in_the_message():
    assert len(str(unknown_name("task", "x" * 300, ["sssp"]))) < 120
