"""Receipts are given up when neither side has one of their records any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.ledger.block_index import Block
from ferry.ledger.ledger import UNREAD
from ferry.ledger.map_block import ReceiptChain
from ferry.ledger.pruning import LogStarts, given_up
from tests.pure.decide.values import RECEIPT

CHAIN = ReceiptChain.of(replace(RECEIPT, source_topic_id="s", target_topic_id="t", source_cluster_id="c"))
BLOCKS = (
    Block(start=0, end=10, target_start=0, target_next=11, rows=1, at=3),
    Block(start=10, end=20, target_start=11, target_next=22, rows=1, at=5),
)
STARTS = LogStarts(
    source_cluster_id="c",
    source_ids={CHAIN.source.topic: "s"},
    target_ids={CHAIN.target.topic: "t"},
    source={CHAIN.source: 10},
    target={CHAIN.target: 11},
)


@pytest.mark.parametrize(
    ("source", "target", "end"),
    [(10, 11, 10), (19, 21, 10), (20, 22, 20), (20, 21, 10), (19, 22, 10), (20, 10, None), (9, 22, None)],
)
def test_a_block_goes_when_both_logs_begin_after_it(source: int, target: int, end: int | None) -> None:
    starts = replace(STARTS, source={CHAIN.source: source}, target={CHAIN.target: target})
    found = given_up(UNREAD, [(CHAIN, BLOCKS)], starts, run="r", at_ms=7)
    assert [(one.start, one.end, one.done) for one in found] == ([] if end is None else [(0, end, -1)])


@pytest.mark.parametrize(
    "starts",
    [
        replace(STARTS, source_cluster_id="other"),
        replace(STARTS, source_ids={CHAIN.source.topic: "other"}),
        replace(STARTS, target_ids={CHAIN.target.topic: "other"}),
        replace(STARTS, target={}),
        replace(STARTS, source={}),
    ],
)
def test_another_log_s_beginning_says_nothing(starts: LogStarts) -> None:
    assert given_up(UNREAD, [(CHAIN, BLOCKS)], starts, run="r", at_ms=7) == []
