"""An approval in the ledger: for one run and its parameters, once, and not for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import BadInput, Refused
from ferry.features.switch.rules.approvals import approval_of_run, approval_record, used
from ferry.ledger.codec import encode
from ferry.model import Record
from ferry.model.switch import Approval
from tests.pure.decide.test_ledger import view_of

RUN = "ferry_drill__a__b/manual__1"
GIVEN = Approval(run=RUN, who="bob", at_ms=10_000, asked_by="ann", params="p")
ASKED = {"params": "p", "by": "try 1 of the drill", "now_ms": 20_000, "within_s": 60.0}


def test_what_is_written_is_read_and_the_last_one_counts() -> None:
    assert approval_of_run(view_of(), RUN) is None
    later = replace(GIVEN, used_by="x", used_ms=3)
    view = view_of(approval_record(GIVEN), approval_record(later), approval_record(replace(GIVEN, run="other")))
    assert approval_of_run(view, RUN) == later


@pytest.mark.parametrize("value", [b"{}", b'{"v": 1, "kind": "approval", "run": 1, "at_ms": "x"}'])
def test_a_record_of_another_shape_is_no_approval(value: bytes) -> None:
    with pytest.raises(BadInput):
        approval_of_run(view_of(Record(key=encode(["approval", RUN]), value=value)), RUN)


def test_an_approval_is_used_once_and_what_began_by_it_continues() -> None:
    taken = used(GIVEN, **ASKED)  # type: ignore[arg-type]
    assert taken == replace(GIVEN, used_by="try 1 of the drill", used_ms=20_000)
    assert used(taken, **{**ASKED, "now_ms": 10**12}) == taken  # type: ignore[arg-type]
    with pytest.raises(Refused, match="used already, by try 1"):
        used(taken, **{**ASKED, "by": "try 2 of the drill"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("approval", "asked", "why"),
    [
        (None, ASKED, "there was no approval"),
        (GIVEN, {**ASKED, "params": "q"}, "other parameters"),
        (GIVEN, {**ASKED, "now_ms": 70_001}, "holds for 60 s"),
    ],
)
def test_what_is_no_approval_of_this_is_refused(approval: Approval | None, asked: dict[str, object], why: str) -> None:
    with pytest.raises(Refused, match=why):
        used(approval, **asked)  # type: ignore[arg-type]
