"""Joining a Ray cluster, or one on this machine."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_CONNECT_SECONDS = 10.0
_LAST_PORT = 65535
_START_RAY = "start one with `ray start --head`, or leave out --ray-address to run on this machine"


def import_ray(raises: type[Exception]) -> Any:
    """The module; raises where Ray is not installed."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise raises(
            "executor='ray' needs Ray, which is not installed: pip install 'adgn[ray]'"
        ) from error
    return ray


def check_reachable(address: str, raises: type[Exception]) -> None:
    """Raises where nobody answers. Ray itself waits for minutes before it says so."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()):
        raise raises(
            f"ray_address={address!r} is not an address; write host:port, such as 10.0.0.1:6379, "
            "or auto"
        )
    if not 1 <= int(port) <= _LAST_PORT:  # the system would wrap 99999 to 34463 and ask there
        raise raises(
            f"ray_address={address!r} has no possible port; write one from 1 to {_LAST_PORT}, "
            "such as 10.0.0.1:6379"
        )
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:  # ValueError: no host can be called so
        raise raises(f"no Ray cluster answers at {address!r} ({error}); {_START_RAY}") from error


@contextmanager
def joined(
    address: str | None,
    cores: int,
    told: Mapping[str, str],
    raises: type[Exception],
    *,
    log_to_driver: bool = False,
) -> Iterator[Any]:
    """Ray, joined to the cluster at an address, or with one of its own on this machine.

    Args:
        address: `host:port` or `"auto"`; `None`: a cluster of this machine that lives as long.
        cores: What such a cluster has.
        told: Variables that workers on other machines do not inherit; those that are set here are
            handed on with these values.
        raises: What is raised where that is not possible.
        log_to_driver: Whether what workers print appears here.
    """
    ray = import_ray(raises)
    quiet = {"logging_level": "error", "log_to_driver": log_to_driver}
    if address is None:
        # "local": one of its own, also where another runs on this machine.
        ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
    else:
        if address != "auto":
            check_reachable(address, raises)
        variables = {name: value for name, value in told.items() if os.environ.get(name)}
        surroundings = {"env_vars": variables} if variables else {}
        try:
            ray.init(address=address, runtime_env=surroundings, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            first = str(error).strip().splitlines()[0]
            raise raises(
                f"cannot join the Ray cluster at {address!r}: {first}; {_START_RAY}"
            ) from error
    try:
        yield ray
    finally:
        ray.shutdown()
