import math
import os
import subprocess

from adgn._util import environment


def test_the_processor_has_a_name_also_where_the_system_has_no_list(monkeypatch, tmp_path):
    listed = tmp_path / "cpuinfo"
    listed.write_text("processor\t: 0\nmodel name\t: Some Processor @ 2 GHz\n")
    monkeypatch.setattr(environment, "_CPUINFO", listed)
    assert environment.processor() == "Some Processor @ 2 GHz"
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "none")
    assert environment.processor()


def test_the_load_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.234, 9.0, 9.0))
    assert environment.load_average() == 1.23
    monkeypatch.delattr(os, "getloadavg")
    assert math.isnan(environment.load_average())


def test_the_commit_tells_of_changes(monkeypatch, tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    monkeypatch.setattr(environment, "_PACKAGE", tmp_path)
    git("init", "-q")
    assert environment.git_commit() is None  # in a repository, but not part of it
    (tmp_path / "__init__.py").write_text("")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    clean, changed = environment.git_commit()
    assert len(clean) == 40
    assert not changed
    (tmp_path / "__init__.py").write_text("changed = True")
    assert environment.git_commit() == (clean, True)


def test_the_environment_of_a_result_names_versions_and_machine():
    import numpy
    import torch

    about = environment.environment()
    assert [*about] == [
        "adgn",
        "git_commit",
        "python",
        "torch",
        "torch_geometric",
        "numpy",
        "platform",
        "processor",
        "cores",
        "threads",
    ]
    assert (about["torch"], about["numpy"]) == (torch.__version__, numpy.__version__)
    assert about["threads"] == torch.get_num_threads()
