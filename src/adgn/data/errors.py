"""What can go wrong with a data set on disk, and how a name that does not exist is refused."""

import difflib
from collections.abc import Iterable

__all__ = ["DamagedFileError", "DataError", "MissingFileError", "unknown_name"]


class DataError(RuntimeError):
    """A data set cannot be prepared or loaded; the message names the file and the remedy."""


class MissingFileError(DataError, FileNotFoundError):
    """A raw file is not there and could not be downloaded."""


class DamagedFileError(DataError):
    """A file is truncated, changed, or not what its name says."""


def unknown_name(argument: str, name: object, valid: Iterable[str]) -> ValueError:
    """The error for a name that is not among the valid ones, with the nearest one suggested.

    Example:
        >>> unknown_name("target", "ssps", ["sssp", "diameter"])
        ValueError("target='ssps' is unknown; did you mean 'sssp'? Valid: sssp, diameter")
    """
    names = list(valid)
    close = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return ValueError(f"{argument}={name!r} is unknown; {hint}Valid: {', '.join(names)}")
