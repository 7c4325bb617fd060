"""What the last batch of a target's log shows before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.features.identical.rules.planned import LAST_SEQUENCE
from ferry.features.identical.rules.stamped import is_outdated, sequence_of, tail_of, wrong_with
from ferry.features.identical.rules.values import Code, Look

OWN = 9
RIGHT: dict[str, Any] = {
    "producer": OWN,
    "epoch": 0,
    "sequence": 3,
    "base": 3,
    "timestamp": 0,
    "next_offset": 5,
}


@pytest.mark.parametrize(
    ("tail", "receipts_end", "planned_end", "code"),
    [
        ({}, 5, 5, None),
        ({}, 0, 9, None),
        ({"producer": OWN + 1}, 5, 9, Code.FOREIGN),
        ({"producer": -1}, 5, 9, Code.FOREIGN),
        ({"epoch": 1}, 5, 9, Code.SHIFTED),
        ({"sequence": 2}, 5, 9, Code.SHIFTED),
        ({"base": 4}, 5, 9, Code.SHIFTED),
        ({}, 6, 9, Code.LOST),
        ({}, 4, 4, Code.AHEAD),
    ],
    ids=[
        "as receipts show it",
        "a run that died",
        "another producer",
        "no producer of its own",
        "another epoch",
        "a lower sequence number",
        "a higher offset",
        "less than receipts show",
        "more than was planned",
    ],
)
def test_the_last_batch_is_the_lanes_at_the_offset_that_is_its_sequence_number(
    tail: dict[str, Any], receipts_end: int, planned_end: int, code: Code | None
) -> None:
    look = Look(at=0, end=5, settled=True, tail=tail_of(**{**RIGHT, **tail}))
    assert wrong_with(look, receipts_end=receipts_end, planned_end=planned_end, producer=OWN) == code


def test_an_empty_log_is_right() -> None:
    look = Look(at=0, end=0, settled=True, tail=None)
    assert wrong_with(look, receipts_end=0, planned_end=9, producer=OWN) is None


def test_a_reading_is_outdated_when_the_lease_is_over() -> None:
    assert [is_outdated(10, now, 5) for now in (10, 14, 15)] == [False, False, True]


def test_offsets_after_the_last_sequence_number_have_none() -> None:
    assert sequence_of(LAST_SEQUENCE) == LAST_SEQUENCE
    with pytest.raises(ValueError, match=str(LAST_SEQUENCE + 1)):
        sequence_of(LAST_SEQUENCE + 1)
