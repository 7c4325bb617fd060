"""A pure test starts no process and opens no connection: the suite's own guard refuses it.

A refusal fails the test also where the code under test catches it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from textwrap import indent

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from ferry.kafka import librdkafka
from tests.purity import Refusals, refuses

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


def send_message() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as line:
        line.sendmsg([b""], [], 0, ("127.0.0.1", 9))


NOWHERE: dict[str, str | int | float | bool] = {"bootstrap.servers": "127.0.0.1:9", "group.id": "g"}

REFUSED: dict[str, Callable[[], object]] = {
    "connect": lambda: socket.create_connection(("127.0.0.1", 9)),
    "connect_ex": lambda: socket.socket().connect_ex(("127.0.0.1", 9)),
    "sendto": send_to,
    "sendmsg": send_message,
    "listen": listen,
    "getaddrinfo": lambda: socket.getaddrinfo("localhost", 9),
    "gethostbyname": lambda: socket.gethostbyname("localhost"),
    "gethostbyname_ex": lambda: socket.gethostbyname_ex("localhost"),
    "gethostbyaddr": lambda: socket.gethostbyaddr("127.0.0.1"),
    "getnameinfo": lambda: socket.getnameinfo(("127.0.0.1", 9), 0),
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


CAUGHT = """
try:
    socket.create_connection(("127.0.0.1", 9))
except Exception:
    pass
"""
"""What the code under test may do."""

ALONE = f"""
thread = threading.Thread(target=exec, args=({CAUGHT!r}, globals()))
thread.start()
thread.join()
"""


def ran(pytester: pytest.Pytester, **parts: str) -> dict[str, str]:
    """The outcomes by phase of a test of these parts: what its fixture does before and after it, and it itself."""
    before, during, after = (indent(parts.get(name, "pass").strip(), "    ") for name in ("setup", "call", "teardown"))
    pytester.makepyfile(
        f"import socket, threading\nimport pytest\n\n@pytest.fixture\ndef it():\n{before}\n    yield\n{after}\n\n"
        f"def test_it(it):\n{during}\n\ndef test_next(): pass\n"
    )
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[Refusals()])
    reports = run.getreports("pytest_runtest_logreport")
    assert {report.outcome for report in reports if report.location[2] == "test_next"} == {"passed"}
    return {report.when: report.outcome for report in reports if report.location[2] == "test_it"}


@pytest.mark.parametrize("how", REFUSED)
def test_pure_tests_are_refused_processes_and_connections(how: str) -> None:
    with refuses():
        REFUSED[how]()


def test_sockets_that_are_connected_already_may_send_messages() -> None:
    near, far = socket.socketpair()
    with near, far:
        assert near.sendmsg([b"a", b"b"]) == 2
        assert far.recv(2) == b"ab"


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["setup", "call", "teardown"])
@pytest.mark.parametrize("how", [CAUGHT, ALONE], ids=["caught", "in a thread"])
def test_a_refusal_that_the_code_under_test_catches_fails_the_test(
    pytester: pytest.Pytester, phase: str, how: str
) -> None:
    assert [when for when, outcome in ran(pytester, **{phase: how}).items() if outcome == "failed"] == [phase]


def test_a_refusal_that_nothing_catches_fails_the_test_once(pytester: pytest.Pytester) -> None:
    found = ran(pytester, call='socket.create_connection(("127.0.0.1", 9))')
    assert found == {"setup": "passed", "call": "failed", "teardown": "passed"}


def test_a_session_of_this_suite_sees_caught_refusals(request: pytest.FixtureRequest) -> None:
    assert any(isinstance(plugin, Refusals) for plugin in request.config.pluginmanager.get_plugins())
