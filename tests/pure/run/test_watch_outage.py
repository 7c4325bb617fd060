"""What a look at a flow blames on whom: an outage only on clusters that do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import parse_settings
from ferry.errors import EmptyFilter, FerryError, Refused, Retryable, Unreachable
from ferry.lane.connections import TargetFirst
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.reader import watch as looking
from ferry.reader.watch import FlowPoll, FlowWatch


def flow_of(*more: str) -> FlowConfig:
    """A flow between clusters that are not there."""
    lines = (
        "clusters = a, b",
        "a.bootstrap.servers = 127.0.0.1:1",
        "b.bootstrap.servers = 127.0.0.1:2",
        "a->b.enabled = true",
        "a->b.topics = .*",
        *more,
    )
    return parse_settings("\n".join(lines), "flows.properties").flow("a->b")


def test_a_secret_that_is_missing_is_no_outage() -> None:
    lines = ("b.security.protocol = SASL_PLAINTEXT", "b.sasl.mechanism = PLAIN", f"b.sasl.jaas.config = {JAAS}")
    with FlowWatch(flow_of(*lines), patience_s=0.2) as watch:
        poll = watch.look()
    assert poll.troubles == {}
    assert "FERRY_TEST_NO_SUCH_SECRET" in poll.hindrances[0]


JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="u" password="${env:FERRY_TEST_NO_SUCH_SECRET}";'
)


@dataclass
class Connected:
    """Connections of which some clusters have stopped to answer, and what the ledger then answers."""

    silent: dict[str, FerryError]
    ledger: FerryError | None = None
    down: dict[str, FerryError] = field(default_factory=dict)
    has_source: bool = True

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            return await work()

        return asyncio.run(whole())

    async def view_if_any(self) -> LedgerView:
        if self.ledger is not None:
            raise self.ledger
        return UNREAD

    def both(self, work: Callable[[Any], Awaitable[Any]]) -> list[tuple[Any, Awaitable[Any]]]:
        clusters = [SimpleNamespace(alias=alias, refresh=self._refresh(alias)) for alias in ("a", "b")]
        return [(cluster, work(cluster)) for cluster in clusters]

    def _refresh(self, alias: str) -> Callable[[Any], Awaitable[None]]:
        async def refresh(_: Any) -> None:
            if alias in self.silent:
                raise self.silent[alias]

        return refresh

    def close(self) -> None:
        pass


def looked(connected: Connected) -> FlowPoll:
    watch = FlowWatch(flow_of(), patience_s=0.2)
    watch._connections = cast("TargetFirst", connected)
    return watch.look()


GONE, PASSING = Unreachable("gone"), Retryable("no connection")


@pytest.mark.parametrize(
    ("error", "silent", "troubles", "hindrances"),
    [
        (GONE, {"b": GONE}, {"b": "gone"}, []),  # the target died while the lag was measured
        (GONE, {"a": GONE}, {"a": "gone"}, []),
        (PASSING, {"a": GONE, "b": GONE}, {"a": "gone", "b": "gone"}, []),
        (GONE, {}, {}, ["gone"]),  # one of its brokers, and not the cluster
        (PASSING, {}, {}, ["no connection"]),
        (GONE, {"a": Refused("no login")}, {}, ["no login"]),
        (Refused("grant READ"), {"a": GONE}, {}, ["grant READ"]),
        (EmptyFilter("no topic"), {}, {}, ["no topic"]),
    ],
)
@pytest.mark.parametrize("in_ledger", [True, False])
def test_an_outage_is_of_who_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
    error: FerryError,
    silent: dict[str, FerryError],
    troubles: dict[str, str],
    hindrances: list[str],
    in_ledger: bool,
) -> None:
    async def lag_over(*_: Any) -> list[Any]:
        raise error

    monkeypatch.setattr(looking, "lag_over", lag_over)
    poll = looked(Connected(silent=silent, ledger=error if in_ledger else None))
    assert (poll.troubles, poll.hindrances) == (troubles, hindrances)
    assert ((poll.view is None), poll.lags) == (in_ledger, None)
