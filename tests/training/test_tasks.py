import pytest

from adgn.training import TASKS, ConfigError, resolve_config


def test_wrong_task_settings():
    with pytest.raises(ConfigError, match=r"radius.*greater than or equal to 2"):
        resolve_config({"task": {"name": "tree-neighbors-match", "radius": 1}})
    with pytest.raises(ConfigError, match=r"Did you mean 'distance'"):
        resolve_config({"task": {"name": "graph-transfer", "distanc": 1}})
    with pytest.raises(ConfigError, match=r"topology.*'line'"):
        resolve_config({"task": {"name": "graph-transfer", "topology": "lin"}})


def test_every_task_says_what_it_is():
    for entry in TASKS.values():
        assert entry.summary
        assert entry.protocol
        assert entry.objective in ("regression", "classification")
