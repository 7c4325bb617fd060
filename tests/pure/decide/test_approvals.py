"""An approval in the ledger: for one run and its parameters, once, and not for ever."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused
from ferry.features.switch.acts.approvals import keep_approval, use_approval
from ferry.features.switch.rules.approvals import approval_of_run, approval_record, used
from ferry.ledger.codec import encode
from ferry.model import Fact, Record
from ferry.model.switch import Approval
from tests.golden import Golden
from tests.pure.decide.test_ledger import view_of
from tests.pure.run.test_switch_journal import Ledger
from tests.said import data_of

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


def test_an_approval_is_used_once_and_what_began_by_it_continues(golden: Golden) -> None:
    taken = used(GIVEN, **ASKED)  # type: ignore[arg-type]
    assert taken == replace(GIVEN, used_by="try 1 of the drill", used_ms=20_000)
    assert used(taken, **{**ASKED, "now_ms": 10**12}) == taken  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        used(taken, **{**ASKED, "by": "try 2 of the drill"})  # type: ignore[arg-type]
    assert data_of(refused.value) == ("approval.used", {"who": GIVEN.who, "by": "try 1 of the drill"})
    golden(refused.value)


@pytest.mark.parametrize(
    ("approval", "asked", "code", "facts"),
    [
        (None, ASKED, "approval.none", {}),
        (GIVEN, {**ASKED, "params": "q"}, "approval.other", {"who": GIVEN.who}),
        (GIVEN, {**ASKED, "now_ms": 70_001}, "approval.expired", {"who": GIVEN.who, "age_s": 60, "holds_s": 60}),
    ],
    ids=["none", "other parameters", "expired"],
)
def test_what_is_no_approval_of_this_is_refused(
    approval: Approval | None, asked: dict[str, object], code: str, facts: dict[str, Fact]
) -> None:
    with pytest.raises(Refused) as refused:
        used(approval, **asked)  # type: ignore[arg-type]
    assert data_of(refused.value) == (code, facts)


@dataclass(kw_only=True)
class Contested(Ledger):
    """A ledger in which another process does something between the next read and the append that follows it."""

    meanwhile: Callable[[Ledger], object] | None = None

    def append(self, records: Sequence[Record]) -> int:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile(self)
        return super().append(records)


def take(ledger: Ledger, by: str) -> Approval:
    return use_approval(ledger, RUN, params="p", by=by, within_s=60.0)


def test_of_two_that_use_an_approval_at_once_the_first_in_the_ledger_has_it(golden: Golden) -> None:
    ledger, now = Contested(), wall_ms()
    keep_approval(ledger, replace(GIVEN, at_ms=now))
    taken: list[Approval] = []
    ledger.meanwhile = lambda other: taken.append(take(other, "try 2"))
    with pytest.raises(Refused) as refused:
        take(ledger, "try 1")
    golden(refused.value, "another try")
    assert [one.used_by for one in taken] == ["try 2"]
    assert take(ledger, "try 2") == taken[0], "what began by it continues"
    keep_approval(ledger, replace(GIVEN, at_ms=now))  # the task that asks writes the same answer again
    with pytest.raises(Refused) as refused:
        take(ledger, "try 1")
    golden(refused.value, "the same answer again")
    keep_approval(ledger, replace(GIVEN, at_ms=now + 1))  # another answer
    assert take(ledger, "try 1").used_by == "try 1"


def test_an_answer_that_comes_while_an_approval_is_used_is_used_in_its_place(golden: Golden) -> None:
    ledger, now = Contested(), wall_ms()
    keep_approval(ledger, replace(GIVEN, at_ms=now))
    ledger.meanwhile = lambda other: keep_approval(other, replace(GIVEN, who="carl", at_ms=now + 1))
    assert take(ledger, "try 1").who == "carl"
    with pytest.raises(Refused) as refused:
        take(ledger, "try 2")
    golden(refused.value)
