"""Runs of real processes on one spread graph: shards, and the partition that a run keeps."""

import signal
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from adgn.cli.app import app
from adgn.distributed.errors import RankError
from adgn.distributed.partition import write_partition
from adgn.training import RunDirectory, prepare, resolve_config, resume, train, unregister_task
from adgn.training.checkpoint import write_atomically
from adgn.training.errors import DamagedRunError, RunError
from adgn.training.launch import local_ranks
from adgn.training.shards import write_shards
from adgn.training.shares import WholeGraph
from tests.training.test_launch import Signal, weights_of

pytestmark = pytest.mark.filterwarnings("ignore::adgn.training.LearnedNothingWarning")
SETTINGS = {
    "task": {"name": "ring"},
    "model": {"name": "adgn", "hidden_channels": 4, "num_layers": 3},
    "loop": {"max_epochs": 6},
    "checkpoint": {"every_epochs": 1},
}


@pytest.fixture(scope="module")
def config():
    patch = pytest.MonkeyPatch()
    patch.setenv("ADGN_PLUGINS", str(Path(__file__).parents[1] / "helpers" / "ring_task.py"))
    yield resolve_config(SETTINGS)
    unregister_task("ring")
    patch.undo()


@pytest.fixture
def every_second(config, tmp_path):
    """A partition that no method would make: nodes go to the two ranks in turns."""
    graph = WholeGraph.of(prepare(config).data)
    file = tmp_path / "turns.safetensors"
    write_partition(file, torch.arange(graph.num_nodes) % 2, graph.edge_index, 2)
    return str(file)


def run(config, partition, **options):
    with local_ranks(2, config, timeout=60, partition=partition) as ranks:
        return train(config, ranks=ranks, partition=partition, **options)


def shards_of(config, folder, *options):
    command = ["partition", "ring", "--parts", "2", "--shards", str(folder), *options]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    return found.output


@pytest.mark.parametrize("kind", ["file", "shards"])
def test_a_run_goes_on_with_the_partition_it_had(
    warm_workers, config, every_second, tmp_path, kind
):
    partition, folder = every_second, tmp_path / "run"
    if kind == "shards":
        partition, data = str(tmp_path / "shards"), prepare(config).data
        owner = torch.arange(WholeGraph.of(data).num_nodes) % 2
        write_shards(Path(partition), data, owner, 2, config.task)
    whole = weights_of(run(config, partition))
    assert torch.allclose(weights_of(train(config)), whole, atol=1e-6)
    # What a run that kept nothing would take; were it equal, this test could not fail.
    assert not weights_of(run(config, "auto")).equal(whole)
    kill = Signal(3, signal.SIGKILL)
    with pytest.raises(RankError, match=r"rank 1 is lost"):
        run(config, partition, run_dir=folder, callbacks=[kill])
    with local_ranks(2, config, timeout=60) as ranks:
        again = resume(folder, ranks=ranks)
    assert again.epochs == 6 and weights_of(again).equal(whole)


def test_what_a_run_keeps(config, every_second, tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.make()
    assert directory.partition_of(2, "auto") == "auto"
    directory.keep_partition(2, Path(every_second).read_bytes())
    assert Path(directory.partition_of(2, "auto")).read_bytes() == Path(every_second).read_bytes()
    assert directory.partition_of(3, "auto") == "auto"  # of another number of ranks
    assert directory.partition_of(2, "blocks") == "blocks"  # what is asked for comes first
    directory.keep_partition(3, str(tmp_path))
    assert directory.partition_of(3, "auto") == str(tmp_path.resolve())
    message = r"shards of 3 ranks \(.*\), and there are 2 ranks now; take --workers 3, .*--parts 2"
    with pytest.raises(RankError, match=message):
        directory.partition_of(2, "auto")
    assert directory.partition_of(2, "ldg") == "ldg"
    assert directory.partition_of(1, "auto") == "auto"  # one process has the graph whole
    directory.partition_file.write_text("{")
    with pytest.raises(DamagedRunError, match=r"partition.json is damaged .* give --partition"):
        directory.partition_of(3, "auto")


@pytest.mark.parametrize("before", ["nothing", "a file", "shards"])
@pytest.mark.parametrize("writes", [0, 1, 2], ids=["at once", "between the files", "at the end"])
def test_a_kill_while_a_partition_is_kept(tmp_path, monkeypatch, before, writes):
    """Whenever it comes, what was kept before is found, or what is new, never a mixture."""
    directory = RunDirectory(tmp_path / "run")
    directory.make()
    if before != "nothing":
        directory.keep_partition(3, b"old" if before == "a file" else str(tmp_path))
    old = directory.partition_of(3, "auto")
    left, write = [None] * writes, write_atomically

    def killed(path, data):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        write(path, data)

    monkeypatch.setattr("adgn.training.run.write_atomically", killed)
    with nullcontext() if writes == 2 else pytest.raises(KeyboardInterrupt):
        directory.keep_partition(2, b"new")
    if writes == 2:
        assert Path(directory.partition_of(2, "auto")).read_bytes() == b"new"
        assert directory.partition_of(3, "auto") == "auto"
        return
    assert directory.partition_of(3, "auto") == old
    if before == "a file":
        assert Path(old).read_bytes() == b"old"
    if before != "shards":
        assert directory.partition_of(2, "auto") == "auto"


def test_a_run_that_goes_on_names_its_plugin(tmp_path, config, monkeypatch):
    """Also where the plugin is missed by what is prepared, not by the configuration."""
    folder, plugin = tmp_path / "run", str(tmp_path / "own_code.py")
    settings = {"task": {"distance": 3, "train": 16}, "loop": {"max_epochs": 2}}
    other = resolve_config("graph-transfer", settings)
    directory = RunDirectory(folder)
    directory.make()
    directory.begin(other)
    directory.plugins_file.write_text(f"{plugin}\n")

    def without_plugin(*_, **__):
        raise ValueError("phi='own' is not known")

    monkeypatch.setattr("adgn.training.preparation.build_network", without_plugin)
    with pytest.raises(RunError, match=r"own_code.py, which is not loaded: .*phi='own' is not"):
        resume(folder)


def test_a_shard_that_is_not_there(warm_workers, config, tmp_path):
    shards_of(config, tmp_path / "shards")
    (tmp_path / "shards" / "rank-1.safetensors").unlink()
    with pytest.raises(RankError, match=r"rank 1 failed: RankError: rank 1 of 2 has no shard"):
        run(config, str(tmp_path / "shards"))


def test_shards_of_other_settings(warm_workers, config, tmp_path):
    assert "2 shards written to" in shards_of(config, tmp_path, "--set", "task.draw=3")
    with pytest.raises(RankError, match=r"of other data \(draw: 0, not 3\); write the shards anew"):
        run(config, str(tmp_path))


def test_one_process_takes_no_shards(config, tmp_path):
    with pytest.raises(RankError, match="is a folder of shards for several ranks, and there is on"):
        train(config, partition=str(tmp_path))
