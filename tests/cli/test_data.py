import pytest
from typer.testing import CliRunner

from adgn.cli import data as data_commands
from adgn.cli.app import app
from adgn.data import CATALOGUE, NODE_DATASETS

SUPPLIED = {name for name, entry in NODE_DATASETS.items() if entry.file}

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, ["data", *map(str, arguments)])


@pytest.fixture
def texas_root(data_root, tmp_path):
    (tmp_path / "WebKB").symlink_to(data_root / "WebKB")
    return tmp_path


def test_list_has_a_line_per_data_set(tmp_path):
    result = run("list", "--root", tmp_path)
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    for name, info in CATALOGUE.items():
        assert info.summary in lines[name]  # whole: nothing is cut off in a pipe
        state = "no file" if name in SUPPLIED else "no" if info.on_disk else "made in memory"
        assert lines[name].rstrip().endswith(state)
    assert str(tmp_path) in result.stdout


def test_info_tells_statistics_and_defects():
    result = run("info", "cornell")
    assert result.exit_code == 0
    assert "nodes: 183" in result.stdout
    assert "known defect: Cornell's upstream file" in result.stdout
    assert 'adgn.data.load("cornell")' in result.stdout
    assert "2302.11640" in run("info", "squirrel").stdout
    assert '"SSSP" is laplacian' in run("info", "graph-property").stdout


def test_prepare_then_list_then_verify(texas_root):
    result = run("prepare", "texas", "graph-transfer", "--root", texas_root)
    assert result.exit_code == 0
    assert "texas: ready" in result.stdout
    assert "graph-transfer: made in memory" in result.stdout
    listed = run("list", "--root", texas_root).stdout.splitlines()
    assert next(line for line in listed if line.startswith("texas")).rstrip().endswith("yes")
    verified = run("verify", "texas", "--root", texas_root)
    assert verified.exit_code == 0
    assert "12 raw ok, 1 prepared ok" in verified.stdout


def test_verify_fails_for_a_damaged_file_and_names_it(texas_root):
    run("prepare", "texas", "--root", texas_root)
    (prepared,) = (texas_root / "adgn").glob("texas-*.safetensors")
    prepared.write_bytes(prepared.read_bytes()[:-1])
    result = run("verify", "--root", texas_root)
    assert result.exit_code == 1
    assert str(prepared) in result.stderr
    assert "1 prepared damaged" in result.stdout


def test_missing_files_fail_only_where_they_were_asked_for(tmp_path):
    assert run("verify", "--root", tmp_path).exit_code == 0
    named = run("verify", "photo", "--root", tmp_path)
    assert named.exit_code == 1
    assert "amazon_electronics_photo.npz is missing" in named.stderr
    unprepared = run("verify", "graph-property", "--root", tmp_path)
    assert unprepared.exit_code == 1
    assert "adgn data prepare graph-property" in unprepared.stderr


def test_names_are_checked_before_any_work(texas_root):
    result = run("prepare", "texas", "wisconsn", "--root", texas_root)
    assert isinstance(result.exception, ValueError)
    assert "Did you mean 'wisconsin'" in str(result.exception)
    assert not (texas_root / "adgn").exists()


def test_prepare_wants_names_or_all(tmp_path):
    for arguments in ((), ("texas", "--all")):
        result = run("prepare", *arguments, "--root", tmp_path)
        assert result.exit_code == 2
        assert "--all" in result.stderr


def test_all_prepares_everything(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("adgn.data.prepare", lambda name, root, progress: asked.append(name))
    result = run("prepare", "--all", "--root", tmp_path)
    assert result.exit_code == 0
    ready = {name for name, info in CATALOGUE.items() if info.on_disk} - SUPPLIED
    assert asked == [name for name in CATALOGUE if name in ready]
    for name in SUPPLIED:
        assert f"{name}: left out, {NODE_DATASETS[name].file} is not in the data root" in (
            " ".join(result.output.split())
        )


def test_every_command_has_help():
    for command in data_commands.app.registered_commands:
        assert command.callback.__doc__
