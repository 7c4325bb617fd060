"""What pure tests are refused: processes, connections, names of hosts, and clients of librdkafka.

The sockets of librdkafka are not Python's. A refusal that the code under test catches fails the test, too (`Refusals`).
`tests/conftest.py` imports this module first. So what is imported later has the classes from here in place of
confluent_kafka's own, which refuse to be made while `nothing_but_python` is in force.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any, ClassVar

import confluent_kafka
import confluent_kafka.admin
import pytest

REFUSED = "a pure test starts no process and opens no connection: move it to the tier that it needs"
CAUGHT = f"{REFUSED}; the code under test caught the refusal"


class Refusal(AssertionError):
    """What a pure test gets for a process or a connection."""


class Guard:
    """Whether a pure test, one of its fixtures or the import of its module is at work: how many of these.

    `refusals` are what they were refused, until the part of the test ends that is at work.
    """

    depth = 0
    refusals: ClassVar[list[Refusal]] = []


def refuse(*_: object, **__: object) -> None:
    """Take the place of what pure tests are refused."""
    refusal = Refusal(REFUSED)
    Guard.refusals.append(refusal)
    raise refusal


def send_connected(line: socket.socket, buffers: Any, ancdata: Any = (), flags: int = 0, address: Any = None) -> int:
    """Take the place of `socket.sendmsg`: a pair of sockets is no connection, another address would be one."""
    if address is not None:
        refuse()
    return super(socket.socket, line).sendmsg(buffers, ancdata, flags)


NAMES = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "getnameinfo")
"""Functions of `socket` that ask for names or addresses of hosts."""

PLACES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    *((socket.socket, name, refuse) for name in ("connect", "connect_ex", "sendto", "listen")),
    (socket.socket, "sendmsg", send_connected),
    *((socket, name, refuse) for name in NAMES),
    (subprocess.Popen, "__init__", refuse),
    (BaseProcess, "start", refuse),
    *((os, name, refuse) for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")),
)
"""Classes and modules, what they have that pure tests are refused, and what takes its place."""

CLIENTS = ("Consumer", "Producer")
"""Clients of librdkafka that are made by C code. Those of admin have a constructor of Python."""


@contextmanager
def nothing_but_python() -> Iterator[None]:
    """Refuse processes and connections.

    It is entered for each pure test. Pytest's monkeypatch takes several times as long.
    """
    before = [vars(where).get(name) for where, name, _ in PLACES]  # None: the class inherits it
    for where, name, instead in PLACES:
        setattr(where, name, instead)
    Guard.depth += 1
    try:
        yield
    finally:
        Guard.depth -= 1
        for (where, name, _), own in zip(PLACES, before, strict=True):
            if own is None:
                delattr(where, name)
            else:
                setattr(where, name, own)


def caught_refusal() -> Refusal | None:
    """Return the first refusal since the last call, and forget all of them."""
    first = next(iter(Guard.refusals), None)
    Guard.refusals.clear()
    return first


@contextmanager
def refuses() -> Iterator[None]:
    """Expect that what is done in the block is refused."""
    with pytest.raises(Refusal):
        yield
    Guard.refusals.clear()


@contextmanager
def none_caught() -> Iterator[None]:
    """Fail where something in the block was refused, and the block did not fail of that."""
    try:
        yield
    finally:
        refusal = caught_refusal()
    if refusal is not None:
        raise AssertionError(CAUGHT) from refusal


class Refusals:
    """A plugin that fails the set-up, the call or the clean-up of a test that caught a refusal."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """See what the fixtures caught when they started."""
        with none_caught():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """See what the test caught."""
        with none_caught():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """See what the fixtures caught when they ended."""
        with none_caught():
            return (yield)


def guarded(make: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that refuses pure tests."""

    def made(self: object, *arguments: Any, **options: Any) -> None:
        if Guard.depth:
            refuse()
        make(self, *arguments, **options)

    return made


def guard_clients() -> None:
    """Put guarded classes in the place of librdkafka's; a second call changes nothing."""
    admin = confluent_kafka.admin.AdminClient
    if hasattr(admin, "guarded"):
        return
    for name in CLIENTS:
        theirs = getattr(confluent_kafka, name)
        body = {"__init__": guarded(theirs.__init__), "__doc__": theirs.__doc__, "__module__": theirs.__module__}
        ours = type(name, (theirs,), body)
        for module in (confluent_kafka, confluent_kafka.cimpl):
            setattr(module, name, ours)
    admin.__init__ = guarded(admin.__init__)  # type: ignore[method-assign]
    admin.guarded = True  # type: ignore[attr-defined]


guard_clients()
