import io
import json
import subprocess
import sys
import warnings

import pytest

import adgn
from adgn.cli import main
from tests import warm


def test_a_mendable_error_is_one_message():
    program = "from adgn.cli import main; main()"
    result = warm.run([sys.executable, "-c", program, "data", "info", "coauthor-cs"])
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: name='coauthor-cs' is not known. Did you mean 'cs'?")


def test_an_unexpected_error_keeps_its_traceback(monkeypatch):
    def broken():
        raise RuntimeError("a bug")

    monkeypatch.setattr("adgn.cli.app.app", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main()


def test_a_warning_is_one_message_and_no_line_of_code(monkeypatch, capsys):
    def warns():
        warnings.warn("the model has learnt [nothing]", stacklevel=1)

    monkeypatch.setattr("adgn.cli.app.app", warns)
    with warnings.catch_warnings():  # puts back what shows warnings, too
        warnings.simplefilter("always")
        main()
    assert capsys.readouterr().err == "warning: the model has learnt [nothing]\n"


def completion(*words):
    return {
        "_ADGN_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }


CASES = [
    (["--help"], {}, "reproduce"),
    (["data", "--help"], {}, "prepare"),
    (["train", "--help"], {}, "--run-dir"),
    (["--version"], {}, f"adgn {adgn.__version__}"),
    (["tasks"], {}, "tree-neighbors-match"),
    (["models"], {}, "https://arxiv.org/abs/1609.02907"),
    ([], completion("adgn", "train", "te"), "texas"),
    ([], completion("adgn", "train", "texas", "--model", "gr"), "graphsage"),
    ([], completion("adgn", "select", "diam"), "diameter"),
    ([], completion("adgn", "models", "gg"), "ggnn"),
]
# Each command in a process of its own, forked from one that has imported the program alone.
EACH = """
import json, os, sys
from adgn.cli import main
for arguments, environment in json.loads(sys.argv[1]):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, arguments
        continue
    os.environ.update(environment)
    sys.argv = ["adgn", *arguments]
    try:
        main()
    finally:
        heavy = {"torch", "torch_geometric", "numpy", "scipy", "optuna"} & {*sys.modules}
        print("heavy modules:", sorted(heavy), end="\\0", flush=True)
    sys.exit()
"""


def test_help_lists_and_completion_do_not_import_torch():
    given = json.dumps([case[:2] for case in CASES])
    result = subprocess.run(
        [sys.executable, "-c", EACH, given], capture_output=True, text=True, check=True
    )
    *outputs, rest = result.stdout.split("\0")
    assert rest == ""
    for output, (arguments, environment, shown) in zip(outputs, CASES, strict=True):
        assert shown in output, (arguments, environment)
        assert output.splitlines()[-1] == "heavy modules: []", (arguments, environment)


def test_no_command_fails_on_a_character_that_cannot_be_printed(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.argv", ["adgn", "tasks", "tree-neighbors-match"])
    with pytest.raises(SystemExit) as end:
        main()
    text = out.buffer.getvalue().decode("ascii")
    assert end.value.code == 0, text
    assert "? = 1 and ReLU" in text  # ε


def test_a_file_that_cannot_be_used_is_one_message(monkeypatch, capsys):
    monkeypatch.setattr("adgn.cli.app.app", lambda: open("a" * 300))  # noqa: PTH123, SIM115
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: cannot use aaa")
    assert "File name too long; restore access or choose another" in line
