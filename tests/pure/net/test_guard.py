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
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from ferry.kafka import librdkafka
from tests.purity import REFUSED as SENTENCE

NOTHING = [sys.executable, "-c", ""]


def connect_later() -> None:
    asyncio.run(asyncio.open_connection("127.0.0.1", 9))


def work_elsewhere() -> None:
    with ProcessPoolExecutor(1) as pool:
        pool.submit(int)


def listen() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()


def send_to() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as line:
        line.sendto(b"", ("127.0.0.1", 9))


NOWHERE: dict[str, str | int | float | bool] = {"bootstrap.servers": "127.0.0.1:9", "group.id": "g"}

REFUSED: dict[str, Callable[[], object]] = {
    "connect": lambda: socket.create_connection(("127.0.0.1", 9)),
    "connect_ex": lambda: socket.socket().connect_ex(("127.0.0.1", 9)),
    "sendto": send_to,
    "listen": listen,
    "asyncio": connect_later,
    "librdkafka's consumer": lambda: Consumer(NOWHERE),
    "librdkafka's producer": lambda: Producer(NOWHERE),
    "librdkafka's admin": lambda: AdminClient(NOWHERE),
    "Ferry's consumer": lambda: vars(librdkafka)["Consumer"](NOWHERE),
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
    with pytest.raises(AssertionError, match=SENTENCE):
        REFUSED[how]()
