"""What the workers of `test_processes` do; without torch, so that they start quickly."""

import os
import signal


def add(message, stop):
    """Adds numbers; prints, which must not disturb the answer."""
    print("working on", message)
    if "sleep" in message:
        stop.wait(message["sleep"])
        return {"stopped": stop.is_set()}
    if "code" in message:
        os._exit(message["code"])
    if "error" in message:
        raise ValueError(message["error"])
    return {
        "sum": sum(message["numbers"]),
        "process": os.getpid(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def die(message, stop):
    """Dies as by the system's want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)
