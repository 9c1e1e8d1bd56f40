"""The command line: parse, call, print."""

from adgn.cli.app import main

__all__ = ["main"]
