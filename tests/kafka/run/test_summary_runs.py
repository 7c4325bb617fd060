"""Runs that open the ledger from a summary copy, report and translate as if they had read all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferry.dev import RunningCluster
from ferry.features.groups.acts import offset_maps
from ferry.features.groups.acts.offset_maps import load_maps
from ferry.features.groups.rules.offset_map import OffsetMap
from ferry.lane import ledger_cache, summaries
from ferry.lane.connections import TargetConnection
from ferry.lane.ledger_cache import LedgerCache
from ferry.ledger import block_index, summary
from ferry.ledger.history import past_run
from ferry.ledger.ledger import fold
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.receipts import last_receipts, receipts
from ferry.model import TopicPartition
from ferry.protocol import driver
from ferry.run.ledger.access import LedgerAccess
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send

RUNS = 7


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """A summary at each run that has anything new, blocks of two receipts, windows of a few records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "SUMMARISED_FROM", 0)
        patch.setattr(summaries, "FIRST_WINDOW", 4)
        patch.setattr(block_index, "BLOCK_ROWS", 2)
        patch.setattr(offset_maps, "WHOLE_BLOCKS", 0)
        patch.setattr(driver, "KEPT_RUNS", 4)
        patch.setattr(ledger_cache, "PORTION", 3)
        yield


def test_runs_go_on_from_summaries(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> None:
    create_topic(source_cluster, topic, 2)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    for number in range(RUNS):
        send(producer(source_cluster), topic, numbered(10, start=number * 10, partitions=2))
        with lab.runs() as runs:
            assert lab.copy(runs, runs.open_run(f"run-{number}", local_origin())).records == 10
    assert lab.assert_equal() == RUNS * 10
    flow = lab.flow
    with TargetConnection.of(flow) as connection:

        async def look() -> None:
            view = await connection.view()
            whole = fold(*await connection.ledger.read())
            assert view.rolled.upto > 0, "opened from a summary"
            blocks = [block for links in view.rolled.chains.values() for block in links.blocks]
            assert sum(block.rows for block in blocks) > RUNS, "most of the two receipts of each run are in blocks"
            assert min(len(links.blocks) for links in view.rolled.chains.values()) > 1
            assert last_receipts(view, flow.lane) == last_receipts(whole, flow.lane)
            for opened in whole.runs[-driver.KEPT_RUNS :]:
                seen = await LedgerCache(connection.ledger).view_of(opened)
                assert past_run(seen, opened) == past_run(whole, opened), "also of what came in the last portion"
            rows: dict[ReceiptChain, list[MapEntry]] = {}
            for (_, record), receipt in zip(whole.of_kind("receipt"), receipts(whole), strict=True):
                rows.setdefault(ReceiptChain.of(receipt), []).append(MapEntry.of(receipt, record.offset))
            assert await LedgerCache(connection.ledger).rows(view, lambda _: True) == rows
            for number in range(2):
                place = TopicPartition(topic=topic, partition=number)
                full = OffsetMap.forward([one for one in receipts(whole) if one.source == place])
                for offset in range(full.end + 2):
                    maps = await load_maps(connection.ledger, view, flow.lane, {place: [offset]}, {})
                    assert maps[place].translate(offset) == full.translate(offset)

        connection.run(look)
    with lab.runs() as runs:
        old = runs.report(f"run-{RUNS - 3}")
        assert (old.records, len(old.receipts)) == (10, 2)
        assert not runs.unfinished_slices(runs.open_or_keep(f"run-{RUNS - 3}", local_origin()))
    with LedgerAccess(flow) as access:
        view = access.view()
        (held,) = [one for one in access.receipts_near(view, flow.lane, topic, 1) if one.source.partition == 0]
        assert (held.run, held.start) == ("run-0", 0)
