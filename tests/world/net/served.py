"""Scripted brokers behind real sockets: what Ferry's own connections do between the network and kafka-python."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Asked

_SIZE = struct.Struct(">i")
_PIECE = 50_000
"""Bytes that are sent at once: answers arrive in pieces."""


class Peer:
    """The broker's end of one connection."""

    def __init__(self, sock: socket.socket, brokers: Brokers) -> None:
        self.node = brokers.nodes[0]
        self._sock = sock
        self._brokers = brokers

    def serve(self) -> None:
        """Answer requests, one after the other, until the connection is closed."""
        with suppress(OSError), self._sock:
            while size := self._received(_SIZE.size):
                self._brokers.take(self, self._received(_SIZE.unpack(size)[0]))

    def _received(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = self._sock.recv(min(size - len(found), _PIECE))
            if not piece:
                return b""
            found += piece
        return bytes(found)

    def deliver(self, asked: Asked, frame: bytearray, late_s: float) -> None:
        """Send an answer."""
        del late_s
        whole = memoryview(_SIZE.pack(len(frame)) + frame)
        for at in range(0, len(whole), _PIECE):
            self._sock.sendall(whole[at : at + _PIECE])
        self._brokers.answered(asked)

    def cut(self) -> None:
        """Disconnect."""
        self._sock.shutdown(socket.SHUT_RDWR)


@contextmanager
def listening(brokers: Brokers, context: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a socket where these brokers, of which there is one, answer."""
    (node,) = brokers.nodes
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        brokers.port = port - node

        def accept() -> None:
            with suppress(OSError):  # the server is closed
                while True:
                    sock, _ = server.accept()
                    with suppress(OSError):
                        made = sock if context is None else context.wrap_socket(sock, server_side=True)
                        threading.Thread(target=Peer(made, brokers).serve, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
