"""A PostgreSQL server below the folder given, until standard input ends; prints its URL."""

import sys
import tempfile
from pathlib import Path

import pgserver

# A folder of its own directly below the system's: the path of the server's socket must be short.
with tempfile.TemporaryDirectory(prefix="pg") as folder:
    Path(folder).chmod(0o755)  # as root the server runs as another user, who must get there
    server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
    print(server.get_uri(), flush=True)
    sys.stdin.read()
    server.cleanup()
