"""Transformed records on real brokers: whatever dies at whichever step, each is written once, unchanged but as told."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from ferry.decide.ledger.unit_codec import eras, unit_receipts
from ferry.dev import RunningCluster
from ferry.errors import Retryable, Superseded
from ferry.model import Plan
from ferry.run.copy.kafka_port import SlotWiring
from ferry.run.copy.slot import SlotResult
from ferry.run.micro_run import MicroRuns
from ferry.run.records.row_slot import RowSlot
from ferry.run.records.rows import Rows
from tests.harness import Lab, create_topic, new_alias, producer, send, settled
from tests.run.hooks import STEPS, HeldSlot, Hooks, copy_held
from tests.run.unit_flows import SOURCES, TARGETS, Units, messages


class Killed(BaseException):
    """The process is gone: nothing of it does anything any more."""


@pytest.fixture
def units(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Units:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(1_500))
    settings = {"ferry.chunk.bytes": "60000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(target_cluster, lab.target_topic(topic), TARGETS)
    return Units(lab, topic)


class HeldUnits(HeldSlot, RowSlot):
    """A real slot of units with hooks around its steps."""

    def __init__(self, rows: Rows, wiring: SlotWiring) -> None:
        RowSlot.__init__(self, rows, wiring)


def copy_units(runs: MicroRuns, units: Units, plan: Plan, slot: int, hooks: Hooks) -> SlotResult:
    return copy_held(runs, plan, slot, hooks, writer=partial(HeldUnits, Rows(units.rows(plan, slot))))


def test_whatever_step_kills_it_each_record_is_written_once(units: Units) -> None:
    def killed() -> None:
        raise Killed

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        for step in STEPS:
            with pytest.raises(Killed):
                copy_units(runs, units, plan, 0, Hooks(before={step: killed}))
        # Killed behind a commit, again and again: each attempt has one chunk more.
        for chunks in (1, 2):
            with pytest.raises(Killed):
                copy_units(runs, units, plan, 0, Hooks(after={"commit": killed}))
            view = settled(runs)
            assert len(unit_receipts(view, runs.lane, plan.run, plan.generation)) >= chunks
        units.copy(runs, plan)
        receipts = unit_receipts(settled(runs), runs.lane, plan.run, plan.generation)
    assert units.assert_once() == 1_500
    assert sum(one.records for one in receipts) == 1_500
    assert len(receipts) > TARGETS
    for unit in plan.units:
        own = [one for one in receipts if one.target == unit.target]
        assert own[0].begins == unit.starts
        assert own[-1].reached == unit.ends
        assert all(one.reached == other.begins for one, other in pairwise(own))


def test_a_lost_commit_is_read_and_not_guessed(units: Units) -> None:
    def lost() -> None:
        raise Retryable("the answer is lost")

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        done = copy_units(runs, units, plan, 0, Hooks(after={"commit": lost}))
        assert done.retries == 1
        units.copy(runs, plan)
    assert units.assert_once() == 1_500


@pytest.mark.parametrize("step", ["append_receipts", "commit"])
def test_a_zombie_wakes_after_a_newer_run_has_finished(units: Units, step: str) -> None:
    with units.lab.runs() as runs:
        plan = units.plan(runs)
        with pytest.raises((Superseded, Retryable)):
            copy_units(runs, units, plan, 0, Hooks(before={step: lambda: units.run() and None}))
    assert units.assert_once() == 1_500


def test_a_run_that_ended_early_is_gone_on_with_by_the_next_plan_and_a_changed_transform_waits(units: Units) -> None:
    def killed() -> None:
        raise Killed

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        with pytest.raises(Killed):
            copy_units(runs, units, plan, 0, Hooks(after={"commit": killed}))
    send(producer(units.lab.source), units.topic, messages(500, start=1_500))

    old, new = units, replace(units, digest="few", kept=lambda _p, _o, key: key is not None and key[-1] % 2 == 0)
    with units.lab.runs() as runs:
        finishing = new.plan(runs)
        assert {unit.digest for unit in finishing.units} == {"all"}  # what the old rule has begun is finished by it
        old.copy(runs, finishing)
        begun = new.plan(runs)
        assert {unit.digest for unit in begun.units} == {"few"}
        new.copy(runs, begun)
        era = eras(settled(runs), runs.lane)[units.target]
    assert era.since == begun.generation

    def rule(partition: int, offset: int, key: bytes | None) -> bool:
        return offset < era.begins[partition] or new.kept(partition, offset, key)

    assert 0 < units.assert_once(rule) < 2_000
