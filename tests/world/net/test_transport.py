"""The parts of kafka-python's wire that Ferry writes itself, against kafka-python's own."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.transport import KafkaSSLTransport

from ferry.kafka.connect import transport
from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.connect.transport import ConnectionManager
from ferry.ports import free_ports


def test_the_socket_of_a_refused_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    plain = KafkaNetSocket.socket

    def remembered(self: KafkaNetSocket, *arguments: object) -> socket.socket:
        made.append(plain(self, *arguments))
        return made[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", remembered)
    loop = event_loop()
    (port,) = free_ports(1)
    with pytest.raises(KafkaConnectionError):
        loop.run(create_connection, loop, "127.0.0.1", port)
    loop.close()
    assert [sock.fileno() for sock in made] == [-1]


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The TLS sockets that a connection manager makes."""
    made: list[Any] = []

    class Remembered(KafkaSSLTransport):  # type: ignore[misc]  # kafka-python has no types
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self._sock)

    monkeypatch.setattr(transport, "KafkaSSLTransport", Remembered)
    return made


@pytest.mark.parametrize("speaks", [True, False], ids=["not TLS", "nothing, until we give up"])
def test_the_socket_of_a_handshake_that_comes_to_nothing_is_closed(tls: list[Any], speaks: bool) -> None:
    loop = event_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        manager = ConnectionManager(
            loop,
            bootstrap_servers=f"127.0.0.1:{port}",
            security_protocol="SSL",
            ssl_context=ssl.create_default_context(),
        )
        opening = manager.bootstrap_async(timeout_ms=20_000)
        loop.poll(timeout_ms=20_000, future=_until(loop, lambda: bool(tls)))
        peer, _ = server.accept()
        with peer:
            if speaks:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                loop.poll(timeout_ms=20_000, future=_until(loop, lambda: manager.last_failure is not None))
                assert "does not speak TLS" in str(manager.last_failure)
            else:
                assert tls[0].fileno() >= 0
            manager.close()
            loop.close()
    assert not opening.succeeded()
    assert {sock.fileno() for sock in tls} == {-1}


def _until(loop: Any, condition: Callable[[], bool]) -> Any:
    async def wait() -> None:
        while not condition():
            await loop.sleep(0.005)

    return loop.call_soon_with_future(wait)
