"""Find rows of offset maps: the chains of a partition, the blocks that an offset needs, and the newer rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ferry.ledger.block_index import Links, rest_of
from ferry.ledger.codec import decode_key, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.pruning import Copy, pruned
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.model import Receipt, TopicPartition

Match = Callable[[ReceiptChain], bool]

_FEW = 4


def chains_of(view: LedgerView, match: Match) -> dict[ReceiptChain, Links]:
    """Return the chains of `view.rolled` that match, without blocks that are pruned."""
    gone = {copy: one.end for copy, one in pruned(view).items()}
    found = {of: links for of, links in view.rolled.chains.items() if match(of)}
    for of, links in found.items() if gone else ():
        upto = gone.get(Copy.of(of))
        if upto is not None:
            blocks = tuple(block for block in links.blocks if block.end > upto)
            found[of] = replace(links, blocks=blocks, pruned=upto)
    return found


def newer_rows(
    view: LedgerView, match: Match, targets: Collection[TopicPartition] | None = None
) -> dict[ReceiptChain, list[MapEntry]]:
    """Return the rows of the matching receipts that are in no block: those at the ends of chains, and the view's own.

    `targets` are the only target partitions that can match, so that other records need not be decoded.
    """
    found = {of: rest_of(of, links) for of, links in chains_of(view, match).items()}
    gone = {copy: one.end for copy, one in pruned(view).items()}
    for receipt, at in _receipts(view, targets):
        of = ReceiptChain.of(receipt)
        if match(of) and receipt.end > gone.get(Copy.of(of), -1):
            found.setdefault(of, []).append(MapEntry.of(receipt, at))
    return found


def _receipts(view: LedgerView, targets: Collection[TopicPartition] | None) -> Iterable[tuple[Receipt, int]]:
    names = None if targets is None else {(place.topic, place.partition) for place in targets}
    keys: Iterable[str] = view.keys("receipt")
    if names is not None and len(names) <= _FEW:  # a search is many times quicker than decoding all
        words = (re.escape(f",{encode(name).decode()},{partition},") for name, partition in names)
        keys = filter(re.compile("|".join(words)).search, keys)
    for text in keys:
        key, record = decode_key(text.encode()), view.by_key[text]
        if names is not None and (key[2], key[3]) not in names:
            continue
        # A view may have been given the receipts of an old run, which are in the blocks, too.
        if record.value is not None and record.offset >= view.rolled.upto:
            yield read_as(record, parse_receipt), record.offset


def needed_block(links: Links, rows: Mapping[int, Sequence[MapEntry]], offset: int, *, backward: bool) -> int | None:
    """Return the next block that the translation of an offset needs and `rows` lacks; None when it needs no more.

    It needs the block that contains the offset, and from there on one with a segment after the offset.
    """
    for index in range(max(links.first_for(offset, backward=backward), 0), len(links.blocks)):
        if index not in rows:
            return index
        last = next((row.segments[-1] for row in reversed(rows[index]) if row.segments), None)
        if last is not None and (last.target_start if backward else last.source_start) > offset:
            return None
    return None
