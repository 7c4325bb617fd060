"""Ends this process in an orderly way when the process it works for is gone: its JVM, or the task that started it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Mapping

import psutil

SUPERVISOR_VARIABLE = "FERRY_SUPERVISOR"
"""`pid@start-time` of the process on whose behalf the job runs; empty when the job may outlive it."""

GATEWAY_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""The port where the JVM of spark-submit listens for the Python process that it starts."""

EVERY_SECONDS = 0.5
CLOCK_SLACK_SECONDS = 2.0
_CONNECT_SECONDS = 5.0


def supervisor() -> str:
    """Return this process, as the value of FERRY_SUPERVISOR for a job that it starts on the same machine."""
    return f"{os.getpid()}@{psutil.Process().create_time()}"


def watch(environment: Mapping[str, str]) -> threading.Thread:
    """Send this process SIGTERM once its parent, or the supervisor that `environment` names, has ended.

    It does so at once if its JVM is gone already: the process that has become its parent would never end.
    """
    named, gateway = environment.get(SUPERVISOR_VARIABLE, ""), environment.get(GATEWAY_VARIABLE, "")
    thread = threading.Thread(
        target=_watch, args=(os.getppid(), named, gateway), name="ferry-parent-watch", daemon=True
    )
    thread.start()
    return thread


def _watch(parent: int, named: str, gateway: str) -> None:
    pause = threading.Event()
    if not gateway or _listens(int(gateway)):
        while os.getppid() == parent and (not named or _lives(named)):
            pause.wait(EVERY_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return False
    except OSError:  # a JVM that is slow is there
        return True
    return True


def _lives(named: str) -> bool:
    pid, _, started = named.partition("@")
    try:
        process = psutil.Process(int(pid))
        return (
            abs(process.create_time() - float(started)) < CLOCK_SLACK_SECONDS
            and process.status() != psutil.STATUS_ZOMBIE
        )
    except psutil.Error:
        return False
