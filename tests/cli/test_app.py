import io
import subprocess
import sys

import pytest

from adgn.cli import main


def run_program(*arguments):
    program = [sys.executable, "-c", "from adgn.cli import main; main()", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_a_mendable_error_is_one_message():
    result = run_program("data", "info", "coauthor-cs")
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


def test_help_does_not_import_torch():
    program = (
        "import sys\n"
        "from adgn.cli import main\n"
        "sys.argv = ['adgn', 'data', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    print('code', end.code, 'torch' in sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "prepare" in result.stdout
    assert "code 0 False" in result.stdout


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
