"""The benchmark's bare pump asks for more partitions at once than a connection takes requests."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[3] / "bench"


class Connection:
    """Takes no more requests, until the loop has slept a while; as kafka-python's, it then fails each at once."""

    initializing = False
    connected = True

    def __init__(self) -> None:
        self.paused = {"max_in_flight"}
        self.slept = 0

    def send_request(self, request: str) -> str:
        return f"{request} failed" if self.paused else f"{request} is answered"

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        if self.slept == 3:
            self.paused.clear()


@pytest.mark.parametrize(("connected", "answer", "slept"), [(True, "it is answered", 3), (False, "it failed", 0)])
def test_a_request_waits_while_the_connection_takes_no_more_and_not_for_one_that_is_lost(
    monkeypatch: pytest.MonkeyPatch, connected: bool, answer: str, slept: int
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    side: Any = object.__new__(importlib.import_module("bare_pump").Side)
    connection = Connection()
    connection.connected = connected
    side._loop, side._node = connection, 1
    side._manager = SimpleNamespace(get_connection=lambda node: connection)
    assert asyncio.run(side.submit("it")) == answer
    assert connection.slept == slept
