"""The reader as a process of this host: found at its socket or started there, and its time to answer."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ferry.errors import Corrupt, Unreachable
from ferry.reader.wire import MOST_TOLD, folder_trouble, is_foreign, receive, send, short_path

VARIABLE = "FERRY_READER"
"""Names the socket of a reader that another service has started: unix:/path."""
SCHEME = "unix:"
BETWEEN_SECONDS = 1.0
"""The shortest time between two starts, however quickly one ends: another process may have started a reader."""
MOST_SECONDS = 60.0
"""The longest time between two starts."""
LEAST_FAILED = 2
"""After this many readers that ended without an answer, a reader cannot be started."""
MOST_KEPT = 4
"""Connections that are kept: as many as requests that wait at the same time."""
_CONNECT_SECONDS = 0.01
_AIRFLOW = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_")


class Slow(Exception):
    """The reader has not answered in time; it may be starting."""


class NoReader(Unreachable):
    """There is no reader, and none can be started: one sentence with what to do."""


class ReaderProcess:
    """The reader at a socket. `starts`: this process may start it."""

    def __init__(self, path: Path, *, starts: bool) -> None:
        self.path, self._starts = path, starts
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        self._failed = 0
        """How many readers ended since the last answer."""
        self._why = ""
        self._trouble = ""
        """Why it cannot be asked, whatever is tried."""
        self._lines: list[socket.socket] = []
        """Idle connections. They show the reader that this process may ask again."""
        weakref.finalize(self, _close, self._lines)

    @classmethod
    def of(cls, folder: Path, environment: Mapping[str, str]) -> ReaderProcess:
        """Return the reader that the environment names, else one of our own in `folder`."""
        named = environment.get(VARIABLE, "")
        if not named:
            return cls(folder / "reader.sock", starts=True)
        found = cls(Path(named.removeprefix(SCHEME)).absolute(), starts=False)
        if not named.startswith(f"{SCHEME}/"):
            found._trouble = f"{VARIABLE} is {named!r}: name the socket of a reader as unix:/path, or take it away"
        return found

    def exchange(self, content: bytes, seconds: float) -> bytes:
        """Return the reply to a message; raises Slow when there is none in time, NoReader when there can be none."""
        if self._trouble:
            raise NoReader(self._trouble)
        until = time.monotonic() + seconds
        line = self._idle() or self._connected(until)
        try:
            line.settimeout(max(0.001, until - time.monotonic()))
            send(line, content)
            reply = receive(line, MOST_TOLD, until=until)
        except OSError:  # no answer in time, or the reader has ended meanwhile
            reply = None
        except Corrupt as error:
            line.close()
            raise NoReader(f"the page's reader at {self.path} does not answer as one: {error}") from None
        if reply is None:
            line.close()
            self._stay()
            raise Slow
        self._failed = 0
        self._keep(line)
        return reply

    def _idle(self) -> socket.socket | None:
        """Return a connection that is open and idle."""
        with self._lock:
            while self._lines:
                line = self._lines.pop()
                state = select.poll()  # the reader sends nothing unasked: readable means that it has ended
                state.register(line, select.POLLIN)
                if not state.poll(0):
                    return line
                line.close()
        return None

    def _keep(self, line: socket.socket) -> None:
        with self._lock:
            self._lines.append(line)
            while len(self._lines) > MOST_KEPT:
                self._lines.pop(0).close()

    def _stay(self) -> None:
        """Keep one connection open, if a reader is there."""
        with self._lock:
            is_open = bool(self._lines)
        with suppress(NoReader, Slow):
            line = None if is_open else self._line()
            if line is not None:
                self._keep(line)

    def _connected(self, until: float) -> socket.socket:
        """Return a connection to the reader, which is started if there is none."""
        if self._starts:
            trouble = folder_trouble(self.path.parent)
            if trouble:
                raise NoReader(f"the page's reader cannot be started, because {trouble}")
        while True:
            line = self._line()
            if line is not None:
                return line
            if not self._starts:
                raise NoReader(
                    f"no reader is at {self.path}, which {VARIABLE} names: start python -m ferry.reader {self.path}"
                    " --stay there, as the same user"
                )
            self._start()
            if time.monotonic() + _CONNECT_SECONDS > until:
                raise Slow
            time.sleep(_CONNECT_SECONDS)

    def _line(self) -> socket.socket | None:
        """Return a connection; None if no process listens. A reader of another user raises NoReader."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            line.settimeout(_CONNECT_SECONDS)
            with short_path(self.path) as name:
                line.connect(name)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            line.close()
            return None
        except (BlockingIOError, TimeoutError):  # too many wait for it
            line.close()
            raise Slow from None
        except OSError as error:
            line.close()
            raise NoReader(
                f"the page's reader at {self.path} cannot be connected to ({error.strerror}): it has to run as the same"
                " user as Airflow's API server"
            ) from None
        if is_foreign(line):
            line.close()
            raise NoReader(
                f"the page's reader at {self.path} is another user's: it has to run as the same user as Airflow's API"
                " server"
            )
        return line

    def _start(self) -> None:
        """Start a reader, unless one was started just now; raises NoReader if readers cannot be started."""
        with self._lock:
            now = time.monotonic()
            if self._process is not None and (code := self._process.poll()) is not None:
                self._process = None
                if code:  # 0: another process had started one, or no page has asked for a long time
                    self._failed += 1
                    self._why = f"it ended with exit code {code}; its last words are in the API server's log"
                    self._not_before = now + min(MOST_SECONDS, BETWEEN_SECONDS * 2**self._failed / 2)
            if now < self._not_before or self._process is not None:
                if self._failed >= LEAST_FAILED:
                    raise NoReader(self._sentence)
                return
            self._not_before = now + BETWEEN_SECONDS
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "ferry.reader", str(self.path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=_environment(),
                    start_new_session=True,
                )
                # Perhaps no page asks again: without this, a reader that has ended stays a zombie.
                threading.Thread(target=self._process.wait, name="wait-for-reader", daemon=True).start()
            except OSError as error:
                self._failed = max(self._failed + 1, LEAST_FAILED)
                self._why = f"{sys.executable} cannot be run ({error.strerror})"
                self._not_before = now + min(MOST_SECONDS, BETWEEN_SECONDS * 2**self._failed / 2)
                raise NoReader(self._sentence) from None

    @property
    def _sentence(self) -> str:
        return (
            f"the page's reader (python -m ferry.reader) cannot be started, because {self._why}: it is tried again, or"
            f" start one yourself and name it in {VARIABLE}"
        )


def _close(lines: list[socket.socket]) -> None:
    while lines:
        lines.pop().close()


def _environment() -> dict[str, str]:
    """Return the reader's environment: all but what Airflow keeps there, its keys, database and connections."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_AIRFLOW)}
