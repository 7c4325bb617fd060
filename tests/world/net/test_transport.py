"""The parts of kafka-python's wire that Ferry writes itself, against kafka-python's own."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.inet import KafkaNetSocket

from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.connect.manager import ConnectionManager
from tests.golden import Golden
from tests.tiers import ANSWER_S


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sockets that a connection manager makes."""
    made: list[Any] = []
    make = KafkaNetSocket.socket

    # The parameters are those of kafka-python, which Ferry looks at before it makes its first event loop.
    def remembered(self: KafkaNetSocket, family: int, sock_type: int, proto: int) -> Any:
        made.append(make(self, family, sock_type, proto))
        return made[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", remembered)
    return made


def test_the_socket_of_a_refused_connection_is_closed(plain: list[Any]) -> None:
    loop = event_loop()
    port = 1  # no process listens there
    manager = ConnectionManager(loop, bootstrap_servers=f"127.0.0.1:{port}")
    with pytest.raises(KafkaConnectionError, match="ECONNREFUSED"):
        loop.run(manager._build_transport, SimpleNamespace(host="127.0.0.1", port=port))
    manager.close()
    loop.close()
    assert [sock.fileno() for sock in plain] == [-1]


def test_a_name_without_an_address_is_named(golden: Golden) -> None:
    loop = event_loop()
    manager = ConnectionManager(loop, bootstrap_servers="127.0.0.1:1")
    with pytest.raises(KafkaConnectionError) as caught:
        loop.run(manager._build_transport, SimpleNamespace(host="broker.invalid", port=1))
    golden(caught.value)
    manager.close()
    loop.close()


@pytest.fixture
def tls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The TLS sockets that are made."""
    made: list[Any] = []
    wrap = ssl.SSLContext.wrap_socket

    def remembered(self: ssl.SSLContext, *arguments: Any, **options: Any) -> Any:
        made.append(wrap(self, *arguments, **options))
        return made[-1]

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", remembered)
    return made


def test_a_handshake_that_is_not_answered_ends_in_time(tls: list[Any]) -> None:
    loop = event_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        manager = ConnectionManager(
            loop,
            bootstrap_servers=f"{host}:{port}",
            security_protocol="SSL",
            ssl_context=ssl.create_default_context(),
        )
        node = SimpleNamespace(host=host, port=port)
        with pytest.raises(KafkaConnectionError, match="TLS"):
            loop.run(manager._build_transport, node, time.monotonic() + 0.3)
        manager.close()
        loop.close()
    assert [sock.fileno() for sock in tls] == [-1]


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
        opening = manager.bootstrap_async(timeout_ms=1_000 * ANSWER_S)
        loop.poll(timeout_ms=1_000 * ANSWER_S, future=_until(loop, lambda: bool(tls)))
        peer, _ = server.accept()
        with peer:
            if speaks:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                loop.poll(timeout_ms=1_000 * ANSWER_S, future=_until(loop, lambda: manager.last_failure is not None))
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
