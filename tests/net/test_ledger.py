"""The ledger topic's answers to a broker that says no."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.errors import Refused, Retryable
from ferry.model import Record
from ferry.net import codes
from ferry.net.cluster import Cluster
from ferry.net.ledger import LedgerTopic, ledger_topic


class Refusing:
    """As much of a cluster as an append asks for; answers every request with one error code, and repeats nothing."""

    alias = "backup"

    def __init__(self, code: int) -> None:
        self.topics = {ledger_topic("primary"): SimpleNamespace(topic_id=None)}
        self._code = code

    async def ask(self, *_: object) -> Any:
        return SimpleNamespace(error_code=self._code)

    async def retrying(self, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        (
            codes.CLUSTER_AUTHORIZATION_FAILED,
            Refused,
            "no producer id .* ferry-ledger.primary.internal .*: grant WRITE",
        ),
        (codes.COORDINATOR_NOT_AVAILABLE, Retryable, "producer id from cluster backup"),
    ],
)
def test_a_writer_without_permission_is_refused_not_repeated(code: int, kind: type[Exception], said: str) -> None:
    ledger = LedgerTopic(cast("Cluster", Refusing(code)), "primary")
    with pytest.raises(kind, match=said):
        asyncio.run(ledger.append([Record(key=b"k", value=b"v")]))
