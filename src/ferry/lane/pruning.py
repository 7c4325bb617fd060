"""Prune receipts whose records neither side has any more, and write their tombstones (ADR 26).

A run writes a limited number of tombstones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import replace

from ferry.clock import wall_ms
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.summaries import LedgerLog
from ferry.ledger.block_index import Block, rest_of
from ferry.ledger.codec import decode_key
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import ReceiptChain, unpack
from ferry.ledger.pruning import Copy, LogStarts, Pruned, candidates, given_up, pruned_record, unswept
from ferry.ledger.receipt_codec import receipt_key
from ferry.ledger.summary import parse_block
from ferry.model import Record, TopicPartition

Write = Callable[[Sequence[Record]], Awaitable[object]]
"""Writes records of one lane, all of them or none.

A copy that was made again has receipts with the same keys, so a superseded run must not write what it has found.
"""

TOMBSTONES_A_RUN = 5_000
"""Receipts that a run may delete in any case: a tenth of a second of its time."""

FOR_EACH_SLICE = 4
"""Receipts that a run deletes for each of its slices, so that a run of many partitions deletes as fast as it writes."""


def tombstones_of(slices: int) -> int:
    """Return the most receipts that a run with so many slices deletes; it also finishes the block in which they end."""
    return max(TOMBSTONES_A_RUN, FOR_EACH_SLICE * slices)


async def sweep(log: LedgerLog, view: LedgerView, lane: str, most: int, write: Write) -> None:
    """Write tombstones for about `most` receipts of the lane that earlier runs pruned, then how far they reach.

    No reader uses those receipts any more, so the sweep may end anywhere. The next run begins where the records show.
    """
    left = most
    for one in unswept(view, lane):
        if left <= 0:
            return
        records, upto = await _tombstones(log, view, one, left)
        await write([*records, pruned_record(replace(one, done=upto))])
        left -= len(records)


async def unswept_tombstones(
    log: LedgerLog, view: LedgerView, lane: str, topics: Collection[str] | None = None
) -> list[Record]:
    """Return tombstones for all that the lane has pruned (of some target topics).

    The receipts are about to be deleted as a whole.
    """
    found: list[Record] = []
    for one in unswept(view, lane):
        if topics is None or one.copy.target.topic in topics:
            records, _ = await _tombstones(log, view, one, one.end - one.start)
            found += records
    return found


async def _tombstones(log: LedgerLog, view: LedgerView, one: Pruned, most: int) -> tuple[list[Record], int]:
    """Return tombstones for receipts between `done` and `end`, and the source offset that they reach.

    The tombstones of a block's receipts come before the block's own, because the block names them. A run that died
    before it recorded its progress may have deleted blocks already, and the log cleaner may have removed them.
    """
    blocks = sorted(_blocks(view, one), key=lambda entry: entry[1].start)
    chosen: list[tuple[ReceiptChain, Block]] = []
    rows, upto = 0, one.end
    for of, block in blocks:
        if rows >= most:
            upto = max(one.done, block.start)
            break
        chosen.append((of, block))
        rows += block.rows
    there = {block.at for _, block in chosen if block.at >= 0}
    records = await log.read_at(there) if there else {}
    keys: list[bytes] = []
    for of, block in chosen:
        record = records.get(block.at)
        if block.at < 0 or record is not None:
            found = unpack(block.data, of) if record is None else parse_block(record, of)
            keys += [receipt_key(of.lane, of.target, row.start, of.since) for row in found if row.end <= one.end]
        if record is not None and block.end <= one.end:
            keys.append(record.key)
    if upto == one.end:
        keys += _unblocked(view, one)
    return [Record(key=key, value=None) for key in dict.fromkeys(keys)], upto


def _blocks(view: LedgerView, one: Pruned) -> Iterator[tuple[ReceiptChain, Block]]:
    for of, links in view.rolled.chains.items():
        if Copy.of(of) == one.copy:
            yield from ((of, block) for block in links.blocks if block.end > one.done and block.start < one.end)


def _unblocked(view: LedgerView, one: Pruned) -> Iterator[bytes]:
    """Yield the keys of receipts that are in no block of this view.

    The view was read without the summary that has them in blocks.
    """
    for of, links in view.rolled.chains.items():
        if Copy.of(of) == one.copy:
            rows = (row for row in rest_of(of, links) if row.end <= one.end)
            yield from (receipt_key(of.lane, of.target, row.start, of.since) for row in rows)
    begin = receipt_key(one.copy.lane, one.copy.target, 0, -1)[: -len(b"0]")].decode()
    for key in view.keys("receipt"):
        if key.startswith(begin):
            start, *since = decode_key(key.encode())[4:]
            if start < one.end and since == ([one.copy.since] if one.copy.since >= 0 else []):
                yield key.encode()


async def give_up(
    view: LedgerView, lane: str, run: str, source: Cluster, target: Cluster, write: Write
) -> list[Pruned]:
    """Record which of the lane's receipts are of no use any more, by where the logs of both clusters begin now.

    Both clusters are asked only when the ledger has something that might be pruned. Raises Unreachable.
    """
    some = candidates(view, lane)
    if not some:
        return []
    starts = await _log_starts([of for of, _ in some], source, target)
    found = given_up(view, some, starts, run=run, at_ms=wall_ms())
    await write([pruned_record(one) for one in found])
    return found


async def _log_starts(chains: Sequence[ReceiptChain], source: Cluster, target: Cluster) -> LogStarts:
    sources = await source.refresh({of.source.topic for of in chains})
    targets = await target.refresh({of.target.topic for of in chains})
    here = [of.source for of in chains if of.source.topic in sources]
    there = [of.target for of in chains if of.target.topic in targets]
    return LogStarts(
        source_cluster_id=source.cluster_id,
        source_ids={name: info.id_text for name, info in sources.items()},
        target_ids={name: info.id_text for name, info in targets.items()},
        source=await _begins(source, here),
        target=await _begins(target, there),
    )


async def _begins(cluster: Cluster, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return (await listed_offsets(cluster, dict.fromkeys(places, EARLIEST), isolation=READ_UNCOMMITTED)).found
