import errno
import json
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from adgn.training.checkpoint import (
    FORMAT,
    AppendedFile,
    StateStore,
    load_into,
    load_weights,
    pack,
    read_bytes,
    save_weights,
    sha256,
    unpack,
    write_atomically,
)
from adgn.training.errors import DamagedRunError, RunError

ends = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
)
trees = st.recursive(
    ends,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(trees)
def test_any_tree_comes_back_as_it_was(tree):
    packed, tensors = pack(tree)
    assert unpack(json.loads(json.dumps(packed)), tensors) == tree


def test_optimizer_state_comes_back_as_it_was(tmp_path):
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    store = StateStore(tmp_path / "state")
    store.save(optimizer.state_dict())
    loaded = store.load()
    assert loaded["param_groups"] == optimizer.state_dict()["param_groups"]
    for number, state in optimizer.state_dict()["state"].items():
        for name, tensor in state.items():
            assert torch.equal(loaded["state"][number][name], tensor)


def test_what_has_no_form_in_a_file_is_refused():
    with pytest.raises(TypeError, match="has a set at moments/0"):
        pack({"moments": [{1, 2}]})


def test_tensors_that_share_memory_are_kept(tmp_path):
    weight = torch.arange(4.0)
    store = StateStore(tmp_path / "state")
    store.save({"a": weight, "b": weight, "c": weight[1:]})
    loaded = store.load()
    assert torch.equal(loaded["b"], weight)
    assert torch.equal(loaded["c"], weight[1:])


def test_only_the_latest_state_is_kept(tmp_path):
    store = StateStore(tmp_path / "state")
    for number in range(3):
        store.save({"x": torch.tensor(number)})
    assert store.load()["x"] == 2
    assert len(list(store.folder.iterdir())) == 2


@pytest.fixture
def store(tmp_path):
    store = StateStore(tmp_path / "state")
    store.save({"x": torch.arange(5.0), "epoch": 3})
    return store


def change(path, how):
    data = bytearray(path.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "emptied":
        data = b""
    else:
        data[-3] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("how", ["truncated", "emptied", "flipped"])
@pytest.mark.parametrize("which", ["manifest.json", "tensors-*"])
def test_changed_files_are_refused(store, how, which):
    (path,) = store.folder.glob(which)
    change(path, how)
    with pytest.raises(DamagedRunError, match="damaged"):
        store.load()


def test_missing_tensor_file_is_refused(store):
    next(store.folder.glob("tensors-*")).unlink()
    with pytest.raises(DamagedRunError, match="is missing"):
        store.load()


def test_tensors_of_another_folder_are_refused(store):
    content = json.loads(store.manifest.read_text())
    del content["sha256"]
    content["tensors"]["file"] = "../elsewhere.safetensors"
    digest = sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
    store.manifest.write_text(json.dumps({**content, "sha256": digest}))
    with pytest.raises(DamagedRunError, match=r"tensors.file='../elsewhere.* is not a name"):
        store.load()


def test_edited_number_in_the_manifest_is_noticed(store):
    text = store.manifest.read_text()
    store.manifest.write_text(text.replace('"epoch":3', '"epoch":4'))
    with pytest.raises(DamagedRunError, match="checksum"):
        store.load()


def test_state_of_a_newer_version_is_refused_with_advice(store):
    content = json.loads(store.manifest.read_text())
    content.update(format=FORMAT + 1, adgn="99.0")
    store.manifest.write_text(json.dumps(content))
    with pytest.raises(RunError, match=r"newer adgn \(99.0.*upgrade"):
        store.load()


def test_weights_come_back_with_their_metadata(tmp_path):
    weights = {"w": torch.randn(3, 2), "b": torch.zeros(1)}
    save_weights(tmp_path / "w.safetensors", weights, {"epoch": 3})
    loaded, about = load_weights(tmp_path / "w.safetensors")
    assert about["epoch"] == 3
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)


def test_the_same_weights_make_the_same_bytes(tmp_path):
    weights = {name: torch.ones(2) for name in "abcdef"}
    for name in "xy":
        save_weights(tmp_path / name, weights, {"epoch": 3, "task": "t", "model": "m"})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize("how", ["truncated", "emptied", "flipped"])
def test_changed_weights_are_refused(tmp_path, how):
    path = tmp_path / "w.safetensors"
    save_weights(path, {"w": torch.randn(30)}, {})
    change(path, how)
    with pytest.raises(DamagedRunError, match="damaged"):
        load_weights(path)


def test_pickled_weights_are_refused_and_never_loaded(tmp_path):
    path = tmp_path / "w.safetensors"
    torch.save({"w": torch.ones(2)}, path)
    with pytest.raises(DamagedRunError, match="damaged"):
        load_weights(path)


def test_weights_of_another_model_are_refused_by_name():
    model = nn.Linear(2, 3)
    with pytest.raises(RunError, match=r"weight is \[3, 9\], not \[3, 2\]"):
        load_into(model, {"weight": torch.ones(3, 9), "bias": torch.ones(3)}, "the file")
    with pytest.raises(RunError, match=r"bias is missing; other is not in the model"):
        load_into(model, {"weight": torch.ones(3, 2), "other": torch.ones(3)}, "the file")


def test_failed_write_keeps_the_earlier_file_and_says_what_to_do(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", b"first")

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write .*a: No space left.*adgn resume"):
        write_atomically(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"


@pytest.mark.parametrize("use", [lambda path: write_atomically(path, b"x"), AppendedFile])
def test_a_link_is_not_written_through(tmp_path, use):
    (tmp_path / "elsewhere").write_bytes(b"precious")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"cannot write .*a: it is a link, not a file"):
        use(tmp_path / "a")
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"


def test_the_advice_of_a_failed_write_is_the_callers(tmp_path):
    with pytest.raises(RunError, match=r"No such file.*intact: choose another --out$"):
        write_atomically(tmp_path / "none" / "a", b"x", "choose another --out")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DamagedRunError, match=r"a is missing; look elsewhere"):
        read_bytes(tmp_path / "a", "look elsewhere")


def test_appended_file_goes_on_where_it_was_cut(tmp_path):
    path = tmp_path / "lines"
    with AppendedFile(path) as file:
        file.append("one")
        length, digest = file.sync()
        file.append("two")
    assert path.read_bytes() == b"one\ntwo\n"
    assert (length, digest) == (4, sha256(b"one\n"))
    with AppendedFile(path, length, digest) as file:
        file.append("three")
        assert file.sync() == (10, sha256(b"one\nthree\n"))
    assert path.read_bytes() == b"one\nthree\n"


@pytest.mark.parametrize("content", [b"on", b"ONE\n", b""])
def test_appended_file_that_lost_or_changed_bytes_is_refused(tmp_path, content):
    path = tmp_path / "lines"
    path.write_bytes(content)
    with pytest.raises(DamagedRunError, match="first 4 bytes"):
        AppendedFile(path, 4, sha256(b"one\n"))


def test_appended_file_that_is_gone_is_refused(tmp_path):
    with pytest.raises(DamagedRunError, match="lines is missing; put the file back"):
        AppendedFile(tmp_path / "lines", 4, sha256(b"one\n"))
