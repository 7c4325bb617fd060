"""The proxies that make the faults of a network do what their modes say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ferry.ports import LOOPBACK, free_ports
from tests.proxy import Proxies
from tests.tiers import PATIENCE


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that answers with what it gets; its port."""
    with socket.create_server((LOOPBACK, 0)) as server:

        def serve(client: socket.socket) -> None:
            # A client that leaves before its answer resets the connection.
            with client, suppress(ConnectionError):
                while data := client.recv(1 << 16):
                    client.sendall(data)

        def accept() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: int) -> Iterator[tuple[Proxies, int]]:
    """The process, and the port in front of the server."""
    (port,) = free_ports(1)
    proxies = Proxies({port: echo})
    yield proxies, port
    proxies.close()


def answered(client: socket.socket, data: bytes, seconds: float = 10) -> bytes:
    """What comes back; nothing where the connection is closed."""
    client.settimeout(seconds)
    found = b""
    try:
        client.sendall(data)
        while len(found) < len(data) and (piece := client.recv(len(data))):
            found += piece
    except ConnectionError:
        return b""
    return found


@pytest.mark.parametrize("mode", ["pass", "delay", "trickle"])
def test_bytes_come_as_they_are(proxy: tuple[Proxies, int], mode: str) -> None:
    proxies, port = proxy
    proxies.change(port, mode, 0.05)
    with socket.create_connection((LOOPBACK, port)) as client:
        data = bytes(range(256)) * 400
        assert answered(client, data) == data


@pytest.mark.parametrize("mode", ["hang", "lost-answers", "lost-requests"])
def test_bytes_do_not_come(proxy: tuple[Proxies, int], mode: str) -> None:
    proxies, port = proxy
    with socket.create_connection((LOOPBACK, port)) as client:
        assert answered(client, b"before") == b"before"
        proxies.change(port, mode)
        with pytest.raises(TimeoutError):
            answered(client, b"during", 0.5)
        proxies.heal()
        client.settimeout(10 * PATIENCE)
        if mode == "hang":
            assert client.recv(6) == b"during"
        else:
            assert client.recv(6) == b"", "out of step: it is closed"


def test_connections_are_cut_and_refused(proxy: tuple[Proxies, int]) -> None:
    proxies, port = proxy

    def works() -> bool:
        with socket.create_connection((LOOPBACK, port)) as client:
            return answered(client, b"hello") == b"hello"

    with socket.create_connection((LOOPBACK, port)) as client:
        assert answered(client, b"before") == b"before"
        proxies.change(port, "cut")
        client.settimeout(10 * PATIENCE)
        assert client.recv(1) == b""
    assert works()
    proxies.change(port, "refuse")
    assert not works()
    proxies.heal()
    assert works()


@pytest.mark.parametrize("mode", ["hang", "lost-answers", "lost-requests"])
def test_a_fault_of_open_connections_leaves_later_ones_alone(proxy: tuple[Proxies, int], mode: str) -> None:
    proxies, port = proxy
    with socket.create_connection((LOOPBACK, port)) as client, socket.create_connection((LOOPBACK, port)) as other:
        assert answered(client, b"before") == b"before"
        assert answered(other, b"before") == b"before"
        proxies.change(port, mode, later=False)
        with pytest.raises(TimeoutError):
            answered(client, b"during", 0.5)
        with pytest.raises(TimeoutError):
            answered(other, b"during", 0.5)
        with socket.create_connection((LOOPBACK, port)) as later:
            assert answered(later, b"later") == b"later"


@pytest.mark.parametrize("later", [True, False], ids=["later ones", "open ones"])
@pytest.mark.parametrize("mode", ["delay", "trickle", "hang", "lost-answers", "lost-requests"])
def test_a_fault_has_met_the_connections_whose_bytes_it_treated(
    proxy: tuple[Proxies, int], mode: str, later: bool
) -> None:
    proxies, port = proxy

    def exchange(client: socket.socket) -> None:
        if mode in ("delay", "trickle"):
            assert answered(client, b"during") == b"during"
        else:
            with pytest.raises(TimeoutError):
                answered(client, b"during", 0.5)

    with socket.create_connection((LOOPBACK, port)) as silent, socket.create_connection((LOOPBACK, port)) as early:
        for client in (silent, early):
            assert answered(client, b"before") == b"before"
        proxies.change(port, mode, 0.05, later=later)
        exchange(early)
        with socket.create_connection((LOOPBACK, port)) as late:
            if later:
                exchange(late)
            else:
                assert answered(late, b"later") == b"later"
        assert proxies.heal() == 1 + later


def test_a_fault_has_met_the_connections_that_it_closed_or_refused(proxy: tuple[Proxies, int]) -> None:
    proxies, port = proxy
    proxies.change(port, "cut")
    assert proxies.heal() == 0, "none was open"
    for mode, met in (("cut", 1), ("refuse", 2)):
        with socket.create_connection((LOOPBACK, port)) as client:
            assert answered(client, b"before") == b"before"
            proxies.change(port, mode)
            client.settimeout(10 * PATIENCE)
            assert client.recv(1) == b""
        with socket.create_connection((LOOPBACK, port)) as client:
            assert answered(client, b"later") == (b"later" if mode == "cut" else b"")
        assert proxies.heal() == met
