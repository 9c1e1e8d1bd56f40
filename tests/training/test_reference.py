from adgn.training import TASKS
from adgn.training.reference import setting_rows, settings_markdown


def test_every_setting_of_every_task_has_a_meaning():
    for task in TASKS:
        for key, default, meaning in setting_rows(task):
            assert meaning, key
            assert default, key


def test_model_options_are_there_under_their_keys():
    keys = [key for key, _, _ in setting_rows("sssp", "gcnii")]
    assert "model.alpha" in keys
    assert "model.epsilon" not in keys
    assert len(keys) == len(set(keys))


def test_markdown_has_a_row_per_setting():
    assert len(settings_markdown("texas").splitlines()) == 2 + len(setting_rows("texas"))
