from adgn.nn import model_spec
from adgn.selection.compact import compact_space


def test_a_model_keeps_its_own_settings():
    assert "model.alpha" in compact_space("property", model_spec("gcnii"))
    assert "model.gamma" in compact_space("heterophily", model_spec("adgn"))
    assert "model.gamma" not in compact_space("heterophily", model_spec("gcn"))


def test_a_family_of_a_users_own_has_learning_rates_and_depths():
    space = compact_space("density", model_spec("gcnii"))
    assert {"optimizer.lr", "model.num_layers", "model.alpha"} < set(space)


def test_spaces_are_not_shared():
    compact_space("property", model_spec("adgn"))["optimizer.lr"].append(9.0)
    assert 9.0 not in compact_space("property", model_spec("adgn"))["optimizer.lr"]
