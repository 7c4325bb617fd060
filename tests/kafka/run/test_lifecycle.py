"""Keep, resume or open a run; what an attempt may say; and how long it may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ferry.copy.slot_end import SlotEnd, end_of
from ferry.dev import RunningCluster
from ferry.errors import BadInput, Retryable, Superseded
from ferry.ledger.codec import IDENTICAL_VERSION
from ferry.ledger.report import RunState
from ferry.ledger.runs import outcome
from ferry.model import RefusalKind
from ferry.plan.options import RunOptions
from ferry.protocol.names import ledger_topic
from ferry.run.micro_run import local_origin
from tests.harness import Lab, Message, producer, send, wait_until, whole_ledger
from tests.kafka.run.conftest import small_lab
from tests.kafka.run.hooks import Hooks, copy_held
from tests.said import data_of


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """Four partitions with 4,000 records, two slots, several chunks each."""
    return small_lab(source_cluster, target_cluster, topic)


def test_a_run_keeps_its_plan_until_all_of_it_is_copied(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_or_keep("one", local_origin())
        assert runs.open_or_keep("one", local_origin()) == plan
        assert list(plan.slices) == runs.unfinished_slices(plan)
        with pytest.raises(BadInput, match="--resume one"):
            runs.open_new("one", local_origin())
        lab.copy_slot(runs, plan, 0)
        # A commit counts in the ledger when its marker is there, some milliseconds after its answer.
        wait_until(
            lambda: {piece.slot for piece in runs.unfinished_slices(plan)} == {1}, "receipts of all slots but slot 1"
        )
        assert lab.copy(runs, plan).state is RunState.SUCCESS
        assert runs.unfinished_slices(plan) == []
        assert runs.open_or_keep("one", local_origin()) == plan, "a cleared run copies nothing again"


def test_a_newer_run_has_what_an_older_one_left(lab: Lab) -> None:
    with lab.runs() as runs:
        older = runs.open_or_keep("older", local_origin())
        newer = runs.open_or_keep("newer", local_origin())
        asks: list[Callable[[], object]] = [
            lambda: runs.open_or_keep("older", local_origin()),
            lambda: runs.unfinished_slices(older),
        ]
        for ask in asks:
            with pytest.raises(Superseded) as caught:
                ask()
            facts = {"run": "older", "flow": str(lab.flow.flow), "newer": "newer", "slices": 4}
            assert data_of(caught.value) == ("superseded.unfinished", facts)
        assert lab.copy(runs, newer).state is RunState.SUCCESS
        assert runs.unfinished_slices(older) == []
        assert runs.open_or_keep("older", local_origin()) == runs.plan_to_resume("older") == older


def test_only_the_newest_attempt_says_what_became_of_a_run(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        first, second = runs.begin(plan, local_origin()), runs.begin(plan, local_origin())
        gave_up = SlotEnd(slot=0, failure=Retryable("no luck"))
        runs.record_outcome(plan, first, [gave_up])
        assert outcome(whole_ledger(runs), "live", "one") is None
        runs.record_outcome(plan, second, [SlotEnd(slot=0, failure=Superseded("too late"))])
        assert outcome(whole_ledger(runs), "live", "one") is None
        runs.record_outcome(plan, second, [gave_up])
        kept = outcome(whole_ledger(runs), "live", "one")
        assert kept is not None
        assert {refusal.kind for refusal in kept.refusals} == {RefusalKind.SLOT_FAILED}
        assert runs.report("one").state is RunState.FAILED

        third = runs.begin(plan, local_origin())
        for slot in plan.used_slots:
            lab.copy_slot(runs, plan, slot, third)
        assert runs.report("one").state is RunState.SUCCESS, "what is copied is copied, whoever gave up before"


def test_a_runs_time_is_counted_from_the_attempts_beginning_and_every_slot_moves(lab: Lab) -> None:
    hurried = replace(lab, settings={**lab.settings, "ferry.run.max.seconds": "60"})
    with hurried.runs() as runs:
        plan = runs.open_run("one", local_origin())
        begun = runs.begin(plan, local_origin())
        long_ago = replace(begun, started_ms=begun.started_ms - 61_000)  # as when the slot waited for a free core
        results = [hurried.copy_slot(runs, plan, slot, long_ago) for slot in plan.used_slots]
        assert [result.time_over for result in results] == [True, True]
        assert all(result.receipts for result in results), results
        runs.record_outcome(plan, begun, [end_of(slot, results[slot]) for slot in plan.used_slots])
        report = runs.report("one")
        assert report.left, "one chunk is less than all"
        assert report.state is RunState.SUCCESS

        ahead = replace(runs.begin(plan, local_origin()), started_ms=begun.started_ms + 3_600_000)
        assert not hurried.copy_slot(runs, plan, 0, ahead).time_over, "a clock that is behind costs nothing"
    assert lab.micro_run().state is RunState.SUCCESS
    assert lab.assert_equal() == 4_000


def test_bad_input_is_judged_before_a_run_disturbs_the_one_at_work(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("at work", local_origin())

        def unknown_topic() -> None:
            with pytest.raises(BadInput, match="no-such-topic"):
                lab.micro_run(RunOptions(only=frozenset({"no-such-topic"})))

        def newer_ledger() -> None:
            newer = Message(key=b'["last","live","later",0]', value=b'{"v":99}')
            send(producer(lab.target), ledger_topic(lab.alias), [newer])
            with pytest.raises(BadInput, match=f" 99, .* {IDENTICAL_VERSION}: "):
                lab.micro_run()
            with lab.runs() as others, pytest.raises(BadInput, match=" 99"):
                others.open_or_keep("another", local_origin())

        for disturb, slot in ((unknown_topic, 0), (newer_ledger, 1)):
            copied = copy_held(runs, plan, slot, Hooks(before={"commit": disturb}))
            assert copied.retries == 0, "the run at work was fenced"
            assert copied.receipts
        assert [opened.record.run for opened in whole_ledger(runs).runs] == ["at work"]
