"""Where data sets live on disk."""

import os
from pathlib import Path

import platformdirs

from adgn.data.errors import DataError

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
