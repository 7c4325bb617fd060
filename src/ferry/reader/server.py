"""The reader's process: one for each socket, as long as a process is connected to it and asks."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ferry.errors import Corrupt
from ferry.reader.wire import MOST_ASKED, Reply, TooLong, encoded, folder_trouble, is_foreign, receive, send, short_path

if TYPE_CHECKING:
    from ferry.reader.service import Service

IDLE_SECONDS = 300.0
"""A reader without questions ends after this time."""
ALONE_SECONDS = 10.0
"""A reader without connections ends after this time: the processes of its page are gone."""
MOST_CLIENTS = 64
HAND_OVER_SECONDS = 0.0005
"""A tenth of Python's own: a finished answer is sent while a poll computes."""
REFUSED = 3
"""The exit code for a folder or a socket of another user."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Clients:
    """How many are connected, when the last change was, and when one last asked."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    left_at: float = field(default_factory=time.monotonic)
    asked_at: float = field(default_factory=time.monotonic)

    def came(self, number: int) -> int:
        """Count one more, or one less; return how many there are."""
        with self.lock:
            self.count += number
            self.left_at = time.monotonic()
            return self.count

    @property
    def are_gone(self) -> bool:
        """Whether no process has been connected, or none has asked, for a long time."""
        now = time.monotonic()
        is_alone = not self.count and now - self.left_at > ALONE_SECONDS
        return is_alone or now - self.asked_at > IDLE_SECONDS


def run(path: Path, *, stays: bool) -> int:
    """Answer at a socket; return 0 at once if another reader has it."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="ferry.reader: %(levelname)s %(message)s")
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # the page itself shows what cannot be reached
    trouble = "" if stays else folder_trouble(path.parent)
    if trouble:
        log.error("%s", trouble)
        return REFUSED
    with _lock_of(path) as is_ours:
        if not is_ours:
            return 0
        with _listening(path) as listener:
            # A question waits in the socket's queue while this is imported.
            from ferry.reader.flows import Flows  # noqa: PLC0415
            from ferry.reader.service import Service  # noqa: PLC0415
            from ferry.reader.watcher import Watchers  # noqa: PLC0415

            sys.setswitchinterval(HAND_OVER_SECONDS)
            _serve(listener, path, Service(Flows(), Watchers(), stays=stays), stays=stays)
    return 0


@contextlib.contextmanager
def _lock_of(path: Path) -> Iterator[bool]:
    """Yield whether this process is the only one at the socket, as long as the block lasts."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(lock)


@contextlib.contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    """Yield the socket, which only this user can connect to; the file of a reader that has ended is removed."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            with short_path(path) as name:
                listener.bind(name)
        finally:
            os.umask(before)
        listener.listen(MOST_CLIENTS)
        listener.settimeout(1.0)
        yield listener
    finally:
        listener.close()
        path.unlink(missing_ok=True)


def _serve(listener: socket.socket, path: Path, service: Service, *, stays: bool) -> None:
    clients, own = _Clients(), path.stat().st_ino
    while stays or not (clients.are_gone or service.is_outdated):
        try:
            line, _ = listener.accept()
        except TimeoutError:
            if not path.exists() or path.stat().st_ino != own:
                return  # no process can find this reader any more
            continue
        if clients.came(1) > MOST_CLIENTS or is_foreign(line):
            clients.came(-1)
            line.close()
            continue
        threading.Thread(target=_answer, args=(line, service, clients), name="ferry reader", daemon=True).start()


def _answer(line: socket.socket, service: Service, clients: _Clients) -> None:
    """Answer one connection until it ends."""
    with line, contextlib.suppress(OSError, Corrupt):
        line.settimeout(None)
        while (reply := _reply_to(line, service, clients)) is not None:
            send(line, reply)
    clients.came(-1)


def _reply_to(line: socket.socket, service: Service, clients: _Clients) -> bytes | None:
    """Return the reply to the next message; None if the other side has closed the connection."""
    try:
        content = receive(line, MOST_ASKED, skips=True)
    except TooLong as error:
        return encoded(
            Reply, Reply(other=f"the page asks its reader for too much at once ({error}): name fewer topics")
        )
    clients.asked_at = time.monotonic()
    return None if content is None else service.reply(content)
