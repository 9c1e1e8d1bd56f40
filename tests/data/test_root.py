from pathlib import Path

import platformdirs
import pytest

from adgn.data import DataError
from adgn.data import data_root as resolve


def test_argument_then_variable_then_user_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ADGN_DATA", str(tmp_path / "variable"))
    assert resolve(tmp_path / "argument") == tmp_path / "argument"
    assert resolve() == tmp_path / "variable"
    monkeypatch.setenv("ADGN_DATA", "")
    assert resolve() == Path(platformdirs.user_cache_dir("adgn")) / "data"
    monkeypatch.delenv("ADGN_DATA")
    assert resolve() == Path(platformdirs.user_cache_dir("adgn")) / "data"


def test_home_and_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("~/data") == tmp_path / "data"
    monkeypatch.chdir(tmp_path)
    assert resolve("here/../data") == tmp_path / "data"


def test_a_file_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(DataError, match=r"file \(root\) is a file; give a folder"):
        resolve(file)
    monkeypatch.setenv("ADGN_DATA", str(file))
    with pytest.raises(DataError, match=r"ADGN_DATA\) is a file"):
        resolve()
