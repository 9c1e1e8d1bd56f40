import subprocess

from adgn.bench import machine


def test_the_machine_is_described():
    described = machine.describe_machine("avx2")
    assert described.processor
    assert described.cores >= 1
    assert described.instruction_set == "avx2"


def test_versions_of_what_takes_part():
    assert {"adgn", "torch", "torch_geometric", "python"} <= set(machine.versions())


def test_available_memory_is_less_than_all():
    described = machine.describe_machine("")
    if described.memory_gb:
        assert 0 < machine.available_megabytes() < 1e3 * described.memory_gb


def test_the_commit_tells_of_changes(monkeypatch, tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    monkeypatch.setattr(machine, "_PACKAGE", tmp_path)
    git("init", "-q")
    assert machine.commit() == "unknown"  # in a repository, but not part of it
    (tmp_path / "__init__.py").write_text("")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    clean = machine.commit()
    assert len(clean) >= 7
    (tmp_path / "__init__.py").write_text("changed = True")
    assert machine.commit() == f"{clean} with changes"
