"""A task's share of the rate, with a ledger that says what the test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import cast

import pytest

from ferry.copy.rate_limiter import RateLimit, RateLimiter
from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.throttle import PORTION_SECONDS
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import Fate, LedgerRecord
from tests.pure.decide.values import PLAN, RECEIPT, lying, piece, place
from tests.pure.scripted.clock import Clock

RATE = 80_000_000
THREE = replace(PLAN, slices=tuple(piece("orders", number, slot=number) for number in range(3)), slots=3)
MOST = 1 << 40


class Ledger:
    """Records that come one read after the other; None is a read that fails."""

    def __init__(self, cluster: Cluster, reads: list[list[LedgerRecord] | None]) -> None:
        self.cluster = cluster
        self.reads = reads
        self.starts: list[int | None] = []

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        self.starts.append(start)
        records = self.reads.pop(0)
        if records is None:
            raise Retryable("no leader at the moment")
        return records, 100 + len(self.starts)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster that nobody connects to, on a loop that skips the time that it would wait."""
    clock = Clock()
    with clock.in_force():
        loop = clock.loop()
        made = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"})
        yield made
        made.close()
        loop.close()


def ended(partition: int, end: int = 100) -> list[LedgerRecord]:
    """The receipts of a slot that has come to its end, as they lie in the ledger."""
    receipt = replace(RECEIPT, source=place("orders", partition), target=place("a.orders", partition), end=end)
    return lying(*receipt_records(receipt), first=10)


def until(cluster: Cluster, condition: Callable[[], bool]) -> Callable[[], Awaitable[None]]:
    """Wait on the cluster's loop."""

    async def wait() -> None:
        while not condition():
            await cluster.loop.sleep(0.005)

    return wait


def test_a_share_grows_as_others_end_and_stays_while_nobody_can_tell(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(cluster, [[], None, ended(1), ended(2, end=60), ended(2)])
    share = RateLimiter(cluster, cast("LedgerTopic", ledger), RateLimit(bytes_per_second=RATE, at_once=2))
    shares: list[float] = []
    change = share.throttle.change

    def seen(rate: float) -> None:
        shares.append(rate)
        change(rate)

    monkeypatch.setattr(share.throttle, "change", seen)
    assert share.throttle.portion(MOST) == RATE / 2 * PORTION_SECONDS
    share.begin(THREE)
    cluster.loop.run(until(cluster, lambda: not ledger.reads))
    cluster.loop.run(share.end)
    assert shares == [RATE / 2, RATE / 2, RATE / 2, RATE], "two at once while three or two are left, then one"
    assert share.throttle.portion(MOST) == RATE * PORTION_SECONDS
    assert ledger.starts == [3, 101, 101, 103, 104], "from the plan on, and what could not be read again"


def test_a_receipt_that_is_not_decided_is_read_again(cluster: Cluster) -> None:
    """Or a slot that has ended would never be seen as such, and its share would be unused."""
    undecided = [replace(record, fate=Fate.OPEN) for record in ended(1)]
    ledger = Ledger(cluster, [undecided, ended(1), []])
    share = RateLimiter(cluster, cast("LedgerTopic", ledger), RateLimit(bytes_per_second=RATE, at_once=3))
    share.begin(THREE)
    cluster.loop.run(until(cluster, lambda: not ledger.reads))
    cluster.loop.run(share.end)
    assert ledger.starts == [3, 10, 102]
    assert share.throttle.portion(MOST) == RATE / 2 * PORTION_SECONDS


def test_who_ends_waits_for_the_look_under_way(cluster: Cluster) -> None:
    ledger = Ledger(cluster, [[]])
    begun: list[int | None] = []
    seen: list[int | None] = []
    read = ledger.read

    async def slow(start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        begun.append(start)
        await cluster.loop.sleep(0.5)
        seen.append(start)
        return await read(start, end)

    ledger.read = slow  # type: ignore[method-assign]  # it waits before it does the same
    share = RateLimiter(cluster, cast("LedgerTopic", ledger), RateLimit(bytes_per_second=RATE, at_once=2))
    share.begin(THREE)
    cluster.loop.run(until(cluster, lambda: bool(begun)))
    cluster.loop.run(share.end)
    assert seen == [3]


def test_one_at_a_time_has_the_whole_rate_and_asks_nobody(cluster: Cluster) -> None:
    ledger = Ledger(cluster, [])
    share = RateLimiter(cluster, cast("LedgerTopic", ledger), RateLimit(bytes_per_second=RATE, at_once=1))
    share.begin(THREE)
    cluster.loop.run(share.end)
    assert share.throttle.portion(MOST) == RATE * PORTION_SECONDS
    assert ledger.starts == []


@pytest.mark.parametrize(("rate", "most", "holds"), [(RATE, 64 << 20, 64 << 20), (2_000_000, 64 << 20, 4_000_000)])
def test_a_reader_holds_two_seconds_of_the_rate(cluster: Cluster, rate: int, most: int, holds: int) -> None:
    ledger = cast("LedgerTopic", Ledger(cluster, []))
    share = RateLimiter(cluster, ledger, RateLimit(bytes_per_second=rate, at_once=2))
    assert share.memory_bytes(most) == holds
    slow = RateLimiter(cluster, ledger, RateLimit(bytes_per_second=1_024, at_once=2))
    assert slow.memory_bytes(most) == 1 << 20
