"""Calls over HTTP that end in time, and whose redirects are answers.

Python's timeout is for each operation of a socket, so an answer that comes in small pieces could take for ever.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
import urllib.request
from functools import partial
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, and does not parse its address: the request fails with HTTPError.

    Following one would make a GET of a POST, whose 200 means nothing. It would also carry secrets to an address that is
    in no configuration.
    """

    def http_error_302(self, *_: Any, **__: Any) -> None:
        """Leave the answer to the handler of errors, which raises HTTPError."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def answer_of(
    request: urllib.request.Request, *, seconds: float, most: int, context: ssl.SSLContext | None = None
) -> tuple[int, bytes]:
    """Return the status of an answer, and its first bytes, `most` at most.

    Raises TimeoutError, or URLError with it as the reason, if the answer is not there after that many seconds. This
    includes the connection, TLS and all that is read. The system's search for the host's address is not cut short, and
    nothing is sent after one that took too long. Raises HTTPError for a status that is not 2xx: what is read from it
    has the same limit. The other errors are those of urllib: OSError, HTTPException and ValueError.
    """
    until = time.monotonic() + seconds
    opener = urllib.request.build_opener(NoRedirect, _Http(until), _Https(until, context))
    with opener.open(request, timeout=seconds) as answer:
        return answer.status, answer.read(most)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


class _Timed(HTTPConnection):
    """A connection all of whose operations end at `until`, by the monotonic clock in seconds."""

    def __init__(self, host: str, *, until: float, **more: Any) -> None:
        super().__init__(host, **more)
        self._until = until
        self._create_connection = self._connected
        self.response_class = partial(_Answer, until=until)  # type: ignore[assignment]  # it is only called

    def _connected(self, address: tuple[str, int], *_: object) -> socket.socket:
        """Return a connection to the first address of the host that takes one."""
        why: OSError | None = None
        for family, kind, protocol, _name, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            made = socket.socket(family, kind, protocol)
            try:
                made.settimeout(_left(self._until))
                made.connect(place)
            except OSError as error:
                made.close()
                why = error
            else:
                made.settimeout(_left(self._until))  # for TLS
                return made
        raise why or OSError(f"{address[0]} has no address")

    def send(self, data: Any) -> None:
        if self.sock is not None:
            self.sock.settimeout(_left(self._until))
        super().send(data)


class _TimedTls(_Timed, HTTPSConnection):
    pass


class _Answer(HTTPResponse):
    """An answer that can be read until a time, however small the pieces in which it comes."""

    def __init__(self, sock: socket.socket, *more: Any, until: float, **named: Any) -> None:
        super().__init__(sock, *more, **named)
        self.fp.close()
        self.fp = io.BufferedReader(_Pieces(sock, until))


class _Pieces(io.RawIOBase):
    """What a socket receives until a time. It keeps the socket open until it is closed itself."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._socket, self._until = sock, until
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._socket.settimeout(_left(self._until))
        found: int | None = self._raw.readinto(buffer)
        return found

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Http(urllib.request.HTTPHandler):
    def __init__(self, until: float) -> None:
        super().__init__()
        self._until = until

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_Timed, until=self._until), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, until: float, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._until, self._trusted = until, context

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        made = partial(_TimedTls, until=self._until, context=self._trusted)
        return self.do_open(made, req)
