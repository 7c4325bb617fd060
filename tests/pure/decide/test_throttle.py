"""One rate for all tasks of a run."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.throttle import Unfinished, share
from ferry.model import Fate
from tests.pure.decide.values import PLAN, RECEIPT, lying, piece, place

RATE = 1_000_000
TWO = replace(PLAN, slices=(piece("orders", 0), piece("orders", 1), piece("users", 0, slot=1)), slots=2)


@given(st.data())
def test_the_shares_of_those_at_work_never_add_up_to_more_than_the_rate(data: st.DataObject) -> None:
    slots = data.draw(st.integers(1, 40), label="slots")
    at_once = data.draw(st.integers(1, slots), label="most at once")
    ended = data.draw(st.integers(0, slots - 1), label="ended")
    at_work = data.draw(st.integers(1, min(at_once, slots - ended)), label="at work")
    known = data.draw(st.lists(st.integers(0, ended), min_size=at_work, max_size=at_work), label="ends heard of")
    assert sum(share(RATE, at_once, slots - heard) for heard in known) <= RATE * (1 + 1e-9)


def test_who_is_left_alone_has_all_of_it() -> None:
    assert [share(RATE, 4, unfinished) for unfinished in (9, 4, 2, 1, 0)] == [RATE / 4, RATE / 4, RATE / 2, RATE, RATE]


def test_a_slot_is_finished_when_committed_receipts_reach_all_its_ends() -> None:
    unfinished = Unfinished(TWO)

    def hear(partition: int, end: int, fate: Fate = Fate.COMMITTED, generation: int = 3, lane: str = "live") -> None:
        receipt = replace(
            RECEIPT,
            source=place("orders", partition),
            target=place("a.orders", partition),
            end=end,
            generation=generation,
            lane=lane,
        )
        unfinished.hear(lying(*((record, fate) for record in receipt_records(receipt))))

    hear(0, 100)
    hear(1, 99)
    hear(1, 100, fate=Fate.OPEN)
    hear(1, 100, fate=Fate.ABORTED)
    hear(1, 100, generation=2)
    hear(1, 100, lane="drill")
    assert len(unfinished) == 2
    hear(1, 110)
    hear(1, 110)
    assert len(unfinished) == 1


def test_undecided_records_are_read_again() -> None:
    first, last = receipt_records(replace(RECEIPT, end=100))
    heard = Unfinished(replace(TWO, slices=TWO.slices[::2]))
    assert heard.hear(lying((first, Fate.OPEN), (last, Fate.OPEN), first=7)) == 7
    assert len(heard) == 2
    assert heard.hear(lying(first, last, first=7)) is None
    assert len(heard) == 1
