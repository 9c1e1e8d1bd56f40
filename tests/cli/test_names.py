from adgn.cli.names import complete_model, complete_task, model_rows, task_rows
from adgn.nn import available_models, model_spec
from adgn.training import TASKS


def test_models_read_from_their_files_are_those_that_are_registered():
    specs = [model_spec(name) for name in available_models()]
    assert model_rows() == [(spec.name, spec.title, spec.paper) for spec in specs]


def test_every_task_has_a_row():
    assert [name for name, _, _ in task_rows()] == list(TASKS)


def test_names_are_completed():
    assert complete_model("gc") == ["gcn", "gcnii"]
    assert complete_task("te") == ["texas"]
    assert complete_task("nothing") == []
