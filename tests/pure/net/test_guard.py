"""A pure test starts no process and opens no connection: the suite's own guard refuses it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

NOTHING = [sys.executable, "-c", ""]


def connect_later() -> None:
    asyncio.run(asyncio.open_connection("127.0.0.1", 9))


def work_elsewhere() -> None:
    with ProcessPoolExecutor(1) as pool:
        pool.submit(int)


REFUSED: dict[str, Callable[[], object]] = {
    "connect": lambda: socket.create_connection(("127.0.0.1", 9)),
    "connect_ex": lambda: socket.socket().connect_ex(("127.0.0.1", 9)),
    "asyncio": connect_later,
    "run": lambda: subprocess.run(NOTHING, check=False),
    "Popen": lambda: subprocess.Popen(NOTHING),
    "system": lambda: os.system("true"),
    "popen": lambda: os.popen("true"),
    "fork": lambda: os.fork() or os._exit(0),
    "spawnv": lambda: os.spawnv(os.P_WAIT, sys.executable, NOTHING),
    "posix_spawn": lambda: os.posix_spawn(sys.executable, NOTHING, {}),
    "posix_spawnp": lambda: os.posix_spawnp(sys.executable, NOTHING, {}),
    "multiprocessing": lambda: multiprocessing.Process(target=int).start(),
    "spawned": lambda: multiprocessing.get_context("spawn").Process(target=int).start(),
    "pool": work_elsewhere,
}


@pytest.mark.parametrize("how", REFUSED)
def test_pure_tests_are_refused_processes_and_connections(how: str) -> None:
    with pytest.raises(AssertionError, match="a pure test starts no process and opens no connection"):
        REFUSED[how]()
