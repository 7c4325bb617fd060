"""Receipts in short, read from the blocks in the ledger where a view does not have them itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from ferry.errors import BadInput
from ferry.lane.summaries import LedgerLog
from ferry.ledger.block_index import Block, Links
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import MapEntry, ReceiptChain, unpack
from ferry.ledger.map_rows import Match, chains_of, newer_rows
from ferry.ledger.summary import parse_block
from ferry.model import TopicPartition

Rows: TypeAlias = Mapping[ReceiptChain, list[MapEntry]]
"""Rows by chain, in ledger order."""

NOWHERE: Mapping[TopicPartition, int] = {}


async def rows_of(
    log: LedgerLog, view: LedgerView, match: Match, begins: Mapping[TopicPartition, int] = NOWHERE
) -> Rows:
    """Return the rows of all matching chains, without blocks that are wholly before `begins`.

    `begins` are target offsets by partition.
    """
    return await _picked(log, view, match, lambda of, block: block.target_next > begins.get(of.target, -1))


async def rows_near(log: LedgerLog, view: LedgerView, match: Match, offset: int) -> Rows:
    """Return the rows of the matching chains in blocks that contain a source offset, and those that are in no block."""
    return await _picked(log, view, match, lambda _, block: block.start <= offset < block.end)


async def _picked(log: LedgerLog, view: LedgerView, match: Match, pick: Callable[[ReceiptChain, Block], bool]) -> Rows:
    chains = chains_of(view, match)
    asked = [(of, index) for of, links in chains.items() for index, block in enumerate(links.blocks) if pick(of, block)]
    rows: dict[ReceiptChain, list[MapEntry]] = {of: [] for of in chains}
    for (of, _), more in sorted((await read_blocks(log, chains, asked)).items(), key=lambda entry: entry[0][1]):
        rows[of] += more
    for of, newer in newer_rows(view, match).items():
        rows.setdefault(of, []).extend(newer)
    return rows


async def block_keys(log: LedgerLog, view: LedgerView, match: Match) -> list[bytes]:
    """Return the keys of the matching chains' blocks in the ledger."""
    ats = {block.at for links in chains_of(view, match).values() for block in links.blocks if block.at >= 0}
    return [record.key for record in (await log.read_at(ats)).values()] if ats else []


async def read_blocks(
    log: LedgerLog, chains: Mapping[ReceiptChain, Links], asked: Collection[tuple[ReceiptChain, int]]
) -> dict[tuple[ReceiptChain, int], list[MapEntry]]:
    """Return the rows of some blocks, named by chain and index.

    Raises BadInput when one is not where the summary says.
    """
    found = {}
    places: dict[int, tuple[ReceiptChain, int]] = {}
    for of, index in asked:
        block = chains[of].blocks[index]
        if block.at < 0:  # not written yet: read from a ledger without a summary
            found[of, index] = chains[of].counting(unpack(block.data, of))
        else:
            places[block.at] = of, index
    records = await log.read_at(places) if places else {}
    for at, (of, index) in places.items():
        if at not in records:
            raise BadInput(
                f"the block of the offset map of {of.target} (lane {of.lane}) at ledger offset {at} is gone: records "
                "of the ledger were deleted; restore it with `ferry ledger rebuild`"
            )
        found[of, index] = chains[of].counting(parse_block(records[at], of))
    return found
