"""Names that become a part of a path, whether typed by a user or read from a file."""

from typing import Any

# Bytes. File systems take 255, of which endings and the marks of temporary files need some.
LONGEST_NAME = 200


def check_name(name: Any, what: str = "name") -> str:
    """The name, if it can be the name of a file or folder and of nothing outside its folder.

    `what` is what it names, for the message of the `ValueError`.

    Example:
        >>> check_name("texas-adgn-compact", "study")
        'texas-adgn-compact'
        >>> check_name("../x", "study")
        Traceback (most recent call last):
        ValueError: study='../x' is not a name; use letters, digits, - and _
    """
    if (
        not isinstance(name, str)
        or not name
        or name.startswith(".")
        or not name.isprintable()  # nor can what is not printable always be encoded
        or any(sign in name for sign in "/\\")
    ):
        raise ValueError(f"{what}={shortened(name)} is not a name; use letters, digits, - and _")
    if len(name.encode()) > LONGEST_NAME:
        raise ValueError(
            f"{what}={shortened(name)} is too long for a name: it has {len(name.encode())} bytes; "
            f"use at most {LONGEST_NAME}"
        )
    return name


def shortened(value: Any, longest: int = 60) -> str:
    """How a value is shown in a message, cut where it is long.

    Example:
        >>> shortened("a" * 100, longest=10)
        "'aaaaaaaaa…"
    """
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
