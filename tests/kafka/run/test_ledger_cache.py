"""A ledger that is read on from what is known shows the same as one that is read whole, on a real broker."""

from __future__ import annotations

import pytest

from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.lane import ledger_cache
from ferry.lane.ledger_cache import LedgerCache
from ferry.ledger.codec import pause_record, resume_record
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import LedgerRecord, Pause, Record
from tests.harness import awaited, delete_topic, new_alias, on_cluster
from tests.pure.decide.values import RECEIPT


class Watched(LedgerTopic):
    """Notes where each reading begins; None is the beginning of the log."""

    def __init__(self, cluster: Cluster, alias: str) -> None:
        super().__init__(cluster, alias)
        self.starts: list[int | None] = []

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        self.starts.append(start)
        return await super().read(start, end)

    async def whole(self) -> LedgerView:
        return fold(*await super().read())


def pause(topic: str) -> Record:
    return pause_record(Pause(topic=topic, who="ann", why="upgrade", since_ms=1))


def test_what_came_since_is_all_that_is_read_and_an_undecided_record_is_read_again(
    target_cluster: RunningCluster,
) -> None:
    alias = new_alias()

    async def act(client: Cluster) -> None:
        ledger = Watched(client, alias)
        await ledger.open(1)
        known = LedgerCache(ledger)
        await ledger.append([pause("a"), pause("b")])
        first = await known.view()
        assert first == await ledger.whole()
        assert await known.view() is first, "nothing came: what is sorted and parsed for it stays"
        await ledger.append([resume_record("a")])
        writer = Writer(client, f"{alias}.writer", 60_000)
        await writer.initialise()
        at = min(await ledger.append_in(writer, receipt_records(RECEIPT)))
        open_view = await known.view()
        assert open_view == await ledger.whole()
        assert [record.offset for record in open_view.open] == [at, at + 1]
        await writer.commit()

        async def closed() -> bool:  # the marker is on its way
            return not (await known.view()).open

        await awaited(client.loop, closed, "the marker")
        view = await known.view()
        assert view == await ledger.whole()
        assert set(view.by_key) == {record.key.decode() for record in (pause("b"), *receipt_records(RECEIPT))}
        assert ledger.starts[:2] == [None, 2]
        assert set(ledger.starts[2:]) == {at}

    on_cluster(target_cluster, act)


def test_a_ledger_that_was_created_again_is_read_whole(target_cluster: RunningCluster) -> None:
    alias = new_alias()

    async def act(client: Cluster) -> None:
        ledger = Watched(client, alias)
        await ledger.open(1)
        known = LedgerCache(ledger)
        await ledger.append([pause("a")])
        await known.view()
        delete_topic(target_cluster, ledger.place.topic)

        async def gone() -> bool:
            return ledger.place.topic not in await client.refresh([ledger.place.topic])

        await awaited(client.loop, gone, "the end of the topic")
        await ledger.open(1)
        await ledger.append([pause("b"), pause("c"), pause("d")])  # it ends behind the old one's end
        view = await known.view()
        assert set(view.by_key) == {pause(topic).key.decode() for topic in "bcd"}
        assert ledger.starts == [None, None]

    on_cluster(target_cluster, act)


def test_a_view_that_is_old_is_not_read_on_from(
    target_cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alias = new_alias()
    monkeypatch.setattr(ledger_cache, "FRESH_SECONDS", -1.0)

    async def act(client: Cluster) -> None:
        ledger = Watched(client, alias)
        await ledger.open(1)
        known = LedgerCache(ledger)
        await ledger.append([pause("a")])
        assert await known.view() == await known.view() == await ledger.whole()
        assert ledger.starts == [None, None]

    on_cluster(target_cluster, act)
