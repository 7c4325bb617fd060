"""A pure test starts no process and opens no connection: the suite's own guard refuses it."""

from __future__ import annotations

import socket
import subprocess

from tests.pure.net.test_guard import NOTHING


def test_others_get_one() -> None:
    assert subprocess.run(NOTHING, check=False).returncode == 0


def test_others_get_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()[:2]) as ours:
        assert ours.getpeername() == server.getsockname()
