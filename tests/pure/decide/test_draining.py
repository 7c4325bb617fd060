"""Which runs stand back from a switch that drains their flow: a table of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ferry.features.switch.rules.draining import PASSING, lasting, left_sentence, undrained
from ferry.ledger.draining import drain_run, standing_back
from ferry.ledger.ledger import fold
from ferry.ledger.switch_codec import begun_record, done_records, end_record, switch_record, switch_states
from ferry.messages.refusals import refused
from ferry.model import Flow, Record, Refusal, RefusalKind
from ferry.model.switch import (
    STEPS,
    Evidence,
    Step,
    StepBegun,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOptions,
    SwitchOutcome,
    Verb,
)
from ferry.plan.rules.lag import TotalLag
from tests.golden import Golden
from tests.pure.decide.values import lying, run_of
from tests.said import facts_in

RUN = run_of("run-7")
BEGUN_MS, OVER_MS = 1_000_000, 1_090_000
SWITCH = Switch(
    id="over-1",
    verb=Verb.SWITCHOVER,
    named=RUN.flow,
    via=RUN.flow,
    who="ann@desk-7",
    approved_by="bob",
    approved_ms=1,
    at_ms=2,
    options=SwitchOptions(drain_timeout_seconds=90),
)
BEFORE = STEPS[Verb.SWITCHOVER][: STEPS[Verb.SWITCHOVER].index(Step.DRAIN)]


def done(*steps: Step) -> list[Record]:
    evidence = Evidence(sentence="seen", rows=({"topic": "orders"},))
    return [
        record
        for step in steps
        for record in done_records(
            SWITCH.id, StepDone(step=step, who="ann@desk-7", begun_ms=1, done_ms=2, evidence=evidence)
        )
    ]


BEGUN = begun_record(SWITCH.id, StepBegun(step=Step.DRAIN, who="ann@desk-7", begun_ms=BEGUN_MS, token="t"))
ENDED = end_record(SWITCH.id, SwitchEnd(outcome=SwitchOutcome.ABANDONED, who="ann@desk-7", why="", at_ms=3))


@pytest.mark.parametrize(
    ("records", "at_ms", "stands_back"),
    [
        ([], BEGUN_MS, False),
        (done(*BEFORE), BEGUN_MS, False),
        ([*done(*BEFORE), BEGUN], BEGUN_MS, True),
        ([*done(*BEFORE), BEGUN], OVER_MS - 1, True),
        ([*done(*BEFORE), BEGUN], OVER_MS, False),  # whoever drained it is dead
        ([*done(*BEFORE), BEGUN, *done(Step.DRAIN)], BEGUN_MS, False),
        ([*done(*BEFORE), BEGUN, ENDED], BEGUN_MS, False),
    ],
    ids=["no step", "before", "begun", "at the last moment", "too late", "done", "given up"],
)
def test_a_run_stands_back_while_a_switch_drains_its_flow(
    records: Sequence[Record], at_ms: int, stands_back: bool, golden: Golden
) -> None:
    view = fold(lying(switch_record(SWITCH), *records), 99)
    why = standing_back(view, RUN, at_ms)
    assert (why is not None) == stands_back
    if why is not None:
        facts = facts_in(why)
        assert (why.code, facts["switch"], facts["verb"], facts["until_ms"]) == (
            "superseded.draining",
            "over-1",
            "switchover",
            OVER_MS,
        )
        golden(why)
    assert list(switch_states(view)) == ["over-1"]


def test_the_drain_itself_and_other_flows_and_lanes_go_on() -> None:
    view = fold(lying(switch_record(SWITCH), *done(*BEFORE), BEGUN), 99)
    assert standing_back(view, RUN, BEGUN_MS) is not None
    for other in (
        replace(RUN, run=drain_run(SWITCH.id, "0f")),
        replace(RUN, flow=Flow.parse("elsewhere->b")),
        replace(RUN, lane="backfill-may"),
    ):
        assert standing_back(view, other, BEGUN_MS) is None
    assert standing_back(view, replace(RUN, run=drain_run("over-2", "0f")), BEGUN_MS) is not None


def test_what_somebody_has_to_mend_ends_a_drain_at_once_and_each_topic_is_told(golden: Golden) -> None:
    def refused(kind: RefusalKind, number: int) -> Refusal:
        return Refusal(topic=f"t{number}", partition=None, kind=kind, message=f"t{number}: mend it")

    every = [refused(kind, number) for number, kind in enumerate(RefusalKind)]
    assert {one.kind for one in lasting(every)} == set(RefusalKind) - PASSING
    assert RefusalKind.TRANSFORM not in PASSING
    twice = [refused(RefusalKind.TRANSFORM, number) for number in (0, 0, 1)]
    golden(undrained(twice, Verb.SWITCHOVER), "two topics")
    five = [refused(RefusalKind.TRANSFORM, number) for number in range(5)]
    golden(undrained(five, Verb.SWITCHOVER), "five topics")


@pytest.mark.parametrize(("verb", "remedy"), [(Verb.SWITCHOVER, True), (Verb.FAILBACK, False)])
def test_a_failback_never_advises_to_delete_what_another_client_wrote(verb: Verb, remedy: bool) -> None:
    found = refused("foreign.record", "orders", 0, place="orders-0", offset=3)
    assert (found.message in undrained([found], verb)) is remedy
    assert ("abandon" in undrained([found], verb)) is not remedy


def test_a_lag_that_is_not_known_is_not_left_out_of_what_a_drain_has_not_copied(golden: Golden) -> None:
    left = TotalLag(partitions=4, behind=2, unknown=1, records=7, bytes=0, seconds=None)
    golden(left_sentence(left), "known and not known")
    golden(left_sentence(replace(left, unknown=0, behind=1, records=1)), "known")
    golden(left_sentence(replace(left, behind=0, records=0)), "not known")
