"""Where data sets live on disk, and what can go wrong there."""

import os
from pathlib import Path

import platformdirs


def check_integer(
    name: str, value: object, at_least: int, *, at_most: int | None = None, why: str = ""
) -> None:
    """Raises unless an argument is an integer in a range; booleans and 2.0 are none.

    Example:
        >>> check_integer("radius", 1, 2, why="smaller trees cannot be split")
        Traceback (most recent call last):
        ValueError: radius=1 is too small; give an integer of at least 2: smaller trees cannot be
        split
    """
    if isinstance(value, bool) or not isinstance(value, int):
        problem = "not an integer"
    elif value < at_least:
        problem = "too small"
    elif at_most is not None and value > at_most:
        problem = "too large"
    else:
        return
    valid = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    reason = f": {why}" if why else ""
    raise ValueError(f"{name}={value!r} is {problem}; give an integer {valid}{reason}")


class DataError(RuntimeError):
    """A data set cannot be prepared or loaded; the message names the file and the remedy."""


class MissingFileError(DataError, FileNotFoundError):
    """A raw file is not there and could not be downloaded."""


class DamagedFileError(DataError):
    """A file is truncated, changed, or not what its name says."""


class GraphInputError(DataError, ValueError):
    """A user's table or graph cannot be used; the message names the place and the remedy."""


ROOT_VARIABLE = "ADGN_DATA"


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of all data sets: the argument, else `$ADGN_DATA`, else a per-user cache folder.

    Raw files of the node data sets lie in it as PyG's classes lay them out
    (`Coauthor/CS/raw/ms_academic_cs.npz`); prepared files lie in its subfolder `adgn`.

    Example:
        >>> data_root("/somewhere").as_posix()
        '/somewhere'
    """
    if root is not None:
        origin, chosen = "root", Path(root)
    elif os.environ.get(ROOT_VARIABLE):
        origin, chosen = f"environment variable {ROOT_VARIABLE}", Path(os.environ[ROOT_VARIABLE])
    else:
        return platformdirs.user_cache_path("adgn") / "data"
    # Absolute, so that it means the same after a change of directory.
    chosen = Path(os.path.abspath(chosen.expanduser()))  # noqa: PTH100, resolve() follows links
    if chosen.exists() and not chosen.is_dir():
        raise DataError(f"the data root {chosen} ({origin}) is a file; give a folder")
    return chosen


def cache_folder(root: Path) -> Path:
    """The subfolder of a data root that holds prepared files."""
    return root / "adgn"
