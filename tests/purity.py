"""What pure tests are refused: processes, connections, and clients of librdkafka, whose sockets Python does not see.

`tests/conftest.py` imports this module first. So what is imported later has the classes from here in place of
confluent_kafka's own, which refuse to be made while `nothing_but_python` is in force.
"""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

import confluent_kafka
import confluent_kafka.admin

REFUSED = "a pure test starts no process and opens no connection: move it to the tier that it needs"
PLACES = (
    *((socket.socket, name) for name in ("connect", "connect_ex", "sendto", "listen")),
    (subprocess.Popen, "__init__"),
    (BaseProcess, "start"),
    *((os, name) for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system")),
)
CLIENTS = ("Consumer", "Producer")
"""Clients of librdkafka that are made by C code. Those of admin have a constructor of Python."""


def refuse(*_: object, **__: object) -> None:
    """Take the place of what pure tests are refused."""
    raise AssertionError(REFUSED)


class Guard:
    """Whether a pure test, one of its fixtures or the import of its module is at work: how many of these."""

    depth = 0


@contextmanager
def nothing_but_python() -> Iterator[None]:
    """Refuse processes and connections.

    It is entered for each pure test. Pytest's monkeypatch takes several times as long.
    """
    before = [vars(where).get(name) for where, name in PLACES]  # None: the class inherits it
    for where, name in PLACES:
        setattr(where, name, refuse)
    Guard.depth += 1
    try:
        yield
    finally:
        Guard.depth -= 1
        for (where, name), own in zip(PLACES, before, strict=True):
            if own is None:
                delattr(where, name)
            else:
                setattr(where, name, own)


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
