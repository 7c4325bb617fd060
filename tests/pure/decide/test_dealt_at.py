"""Where an offset of a dealt topic may have gone: by chunks, and what is said where none has it any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.ledger.repartitioned_at import Dealt, dealt_at
from ferry.model import Era, Offsets, Receipt
from tests.pure.decide.test_deal import receipt
from tests.pure.decide.values import place, redealt

OLD = Era(source_topic="t", target_topic="x", since=1, begins=(0, 0), digest="d", partitions=1)
NEW = replace(OLD, since=5, begins=(10, 4), partitions=2)
ERAS = [NEW, replace(NEW, target_topic="y"), replace(OLD, target_topic="z"), replace(OLD, source_topic="u")]


def chunk(name: str, number: int, begins: Offsets, reached: Offsets, era: int = 5) -> Receipt:
    return redealt(receipt(number, reached, era=era), target=place(name, number), starts=begins)


RECEIPTS = {
    place("x", 0): [
        chunk("x", 0, (0, 0), (10, 4), 1),
        chunk("x", 0, (10, 4), (20, 4)),
        chunk("x", 0, (20, 4), (20, 9)),
    ],
    place("x", 1): [chunk("x", 1, (20, 4), (30, 9))],
    place("y", 0): [chunk("y", 0, (10, 4), (12,))],
}


@pytest.mark.parametrize(
    ("partition", "offset", "states", "keyless"),
    [
        (0, 11, "passed forgotten passed ahead", {0: False, 1: True}),
        (1, 5, "passed passed ahead ahead", {0: True, 1: False}),
        (0, 3, "passed earlier earlier earlier", {0: False, 1: False}),
        (0, 40, "ahead ahead ahead ahead", {0: True, 1: False}),
    ],
)
def test_each_target_partition_says_what_it_has_of_an_offset(
    partition: int, offset: int, states: str, keyless: dict[int, bool]
) -> None:
    found = dealt_at(ERAS, RECEIPTS, place("t", partition), offset)
    assert [one.target for one in found] == [place("x", 0), place("x", 1), place("y", 0), place("y", 1)]
    assert [one.state for one in found] == [Dealt(word) for word in states.split()]
    assert [one.keyless for one in found] == [keyless[one.target.partition] for one in found]
    assert [one.chunk is not None for one in found] == [one.state is Dealt.PASSED for one in found]


def test_a_topic_that_was_never_dealt_has_nothing() -> None:
    assert dealt_at(ERAS, {}, place("other", 0), 1) == []
