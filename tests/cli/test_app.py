import subprocess
import sys
import warnings

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


def test_a_warning_is_one_message_and_no_line_of_code(monkeypatch, capsys):
    def warns():
        warnings.warn("the model has learnt [nothing]", stacklevel=1)

    monkeypatch.setattr("adgn.cli.app.app", warns)
    with warnings.catch_warnings():  # puts back what shows warnings, too
        warnings.simplefilter("always")
        main()
    assert capsys.readouterr().err == "warning: the model has learnt [nothing]\n"


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
