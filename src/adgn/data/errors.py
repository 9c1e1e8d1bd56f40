"""What can go wrong with a data set on disk."""


class DataError(RuntimeError):
    """A data set cannot be prepared or loaded; the message names the file and the remedy."""


class MissingFileError(DataError, FileNotFoundError):
    """A raw file is not there and could not be downloaded."""


class DamagedFileError(DataError):
    """A file is truncated, changed, or not what its name says."""


class GraphInputError(DataError, ValueError):
    """A user's table or graph cannot be used; the message names the place and the remedy."""
