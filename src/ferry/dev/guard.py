"""Stops clusters when the process that uses them is gone, however it ended."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ferry.dev.cluster import down


@contextmanager
def guard(home: Path) -> Iterator[None]:
    """Delete the clusters of `home` when the block or this process ends, also by SIGKILL.

    A process of `ferry.dev.watcher` in a session of its own reads a pipe whose other end only this process holds. The
    end of the pipe is its signal. (A parent-death signal would not do: Linux sends it when the starting *thread* ends.)
    """
    home.mkdir(parents=True, exist_ok=True)
    watcher = subprocess.Popen(
        [sys.executable, "-m", "ferry.dev.watcher", str(home)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        down(home, delete=True, grace_seconds=0)
        watcher.communicate()
