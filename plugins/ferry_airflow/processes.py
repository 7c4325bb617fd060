"""The processes of a spark-submit on this machine: its JVM, the Python driver, Spark's workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

POLL_SECONDS = 0.05


def end_job(submit_pid: int, application: str, *, grace_seconds: float) -> None:
    """End the driver that runs `application` by SIGTERM, so that it ends its chunk; after the grace kill what lives.

    Without a driver (Spark is still starting) the JVM gets the signal.
    """
    tree = _tree(submit_pid)
    drivers = [process for process in tree if process.pid != submit_pid and _runs(process, application)]
    for process in drivers or tree[:1]:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    until = time.monotonic() + grace_seconds
    pause = threading.Event()
    while _living(tree) and time.monotonic() < until:
        pause.wait(POLL_SECONDS)
    for process in _living([*tree, *_tree(submit_pid)]):
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _tree(pid: int) -> list[psutil.Process]:
    """Return the process and all its descendants; empty when it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _runs(process: psutil.Process, application: str) -> bool:
    try:
        return application in process.cmdline()
    except psutil.Error:
        return False


def _living(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    # Not psutil.wait_procs: that would take the exit status of spark-submit away from its Popen.
    living = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                living.append(process)
    return living
