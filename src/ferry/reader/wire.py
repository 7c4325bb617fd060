"""The exchange between the page and its reader: one bounded frame each way, over a Unix socket of the same user."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ferry.errors import Corrupt
from ferry.reader.typed import dump, load

MOST_ASKED = 1 << 20
"""Bytes of a message; with the logins of some flows, key stores among them."""
MOST_TOLD = 16 << 20
"""Bytes of a reply; the page of a report is the largest usual one."""
_LENGTH = struct.Struct(">I")
_PEER = struct.Struct("3i")
_AT_ONCE = 1 << 16
_LONGEST = 100
"""Bytes of a path that any system accepts for a socket."""


class TooLong(Corrupt):
    """A frame has more bytes than are read; they were skipped, if that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """The settings of Airflow's connections by their ids; `error`: why they cannot be read."""

    of: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question about a flow. `closely`: its own pages are open, not only the list of all flows."""

    ask: str
    flow: str
    closely: bool
    about: Any
    logins: Logins | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Some questions; `config` is the file of the flows, `deployment` the id of this Airflow."""

    version: str
    config: str
    deployment: str
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer to a question; `needs` are the ids of the connections whose logins it needs."""

    got: Any = None
    error: str = ""
    at_ms: int = 0
    failed_ms: int = 0
    is_asked: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answers, in the order of the questions; `other`: why this reader does not serve that page."""

    told: tuple[Told, ...] = ()
    other: str = ""


def encoded(of: type[Any], value: Any) -> bytes:
    """Return a message or a reply as bytes."""
    return json.dumps(dump(of, value), separators=(",", ":")).encode()


def decoded(of: type[Any], content: bytes) -> Any:
    """Return the message or reply in some bytes; raises Corrupt if they hold none."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise Corrupt(f"{len(content)} bytes are not JSON") from None
    return load(of, body)


def send(line: socket.socket, content: bytes) -> None:
    """Send a frame; the socket's timeout counts."""
    line.sendall(_LENGTH.pack(len(content)) + content)


def receive(line: socket.socket, most: int, *, until: float | None = None, skips: bool = False) -> bytes | None:
    """Return a frame, at the latest `until` (monotonic clock); None if the other side closed before it began.

    Raises TooLong for a frame of more than `most` bytes, and TimeoutError. `skips`: such a frame is skipped, so
    that the line can be used again.
    """
    head = _exactly(line, _LENGTH.size, until)
    if not head:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > most:
        left = length if skips else 0
        while left and (part := _exactly(line, min(left, _AT_ONCE), until)):
            left -= len(part)
        raise TooLong(f"a message of {length} bytes came, and at most {most} are read")
    return _exactly(line, length, until)


def _exactly(line: socket.socket, count: int, until: float | None) -> bytes:
    """Return `count` bytes; none if the other side closed before the first. They are collected as they come."""
    found = bytearray()
    while len(found) < count:
        if until is not None:
            line.settimeout(max(0.001, until - time.monotonic()))
        part = line.recv(min(count - len(found), _AT_ONCE))
        if not part:
            if not found:
                return b""
            raise Corrupt("a message ended before its end")
        found += part
    return bytes(found)


def peer_user(line: socket.socket) -> int:
    """Return the user id of the other side; -1 if the system does not report it."""
    if not hasattr(socket, "SO_PEERCRED"):
        return -1
    _, user, _ = _PEER.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(user)


def is_foreign(line: socket.socket) -> bool:
    """Return whether the other side is another user."""
    return peer_user(line) not in (-1, os.geteuid())


@contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yield a name of a socket's file that is short enough for the system, as long as the block lasts."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def folder_trouble(folder: Path) -> str:
    """Return why a socket in a folder is not safe from other users, and what to do; empty when it is safe."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        return f"{folder} cannot be made ({error.strerror}): let this user make it"
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder: remove it"
    if found.st_uid != os.geteuid():
        return f"{folder} belongs to another user (id {found.st_uid}): remove it, or change its owner"
    if found.st_mode & 0o022:
        return f"{folder} can be written to by other users: chmod 700 {folder}"
    return ""
