"""Transformed records on real brokers: whatever dies at whichever step, each is written once, unchanged but as told."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from ferry.copy.kafka_slot import SlotWiring
from ferry.dev import RunningCluster
from ferry.errors import Retryable, Superseded
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import Rows
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.ledger.report import RunState
from ferry.ledger.unit_codec import eras, unit_receipts
from ferry.model import ChangeKind, NotComparedKind, Plan, RefusalKind
from ferry.plan.lag import measure_lag
from ferry.protocol.slot import SlotProgress
from ferry.reader.watch import FlowWatch
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, Message, create_topic, new_alias, producer, read_topic, send, settled
from tests.kafka.run.hooks import STEPS, Held, Hooks, copy_held
from tests.program import warm_ferry as ferry
from tests.pure.decide.dealt_model import partition_of_record
from tests.pure.run.unit_flows import SOURCES, TARGETS, Units, lab_of, messages
from tests.said import codes
from tests.tiers import ANSWER_S


class Killed(BaseException):
    """The process is gone: nothing of it does anything any more."""


@pytest.fixture
def units(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Units:
    create_topic(source_cluster, topic, SOURCES)
    send(producer(source_cluster), topic, messages(1_500))
    settings = {"ferry.chunk.bytes": "60000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    return Units(lab_of(lab, topic), topic)


class HeldUnits(Held, RowSlot):
    """A real slot of units with hooks around its steps."""

    def __init__(self, wiring: SlotWiring, *, rows: Rows) -> None:
        RowSlot.__init__(self, wiring, rows=rows)


def copy_units(runs: MicroRuns, units: Units, plan: Plan, slot: int, hooks: Hooks) -> SlotProgress:
    return copy_held(runs, plan, slot, hooks, port_of=partial(HeldUnits, rows=Rows(units.rows(plan, slot))))


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
    assert all(len(one.epochs) == SOURCES and None not in one.epochs for one in receipts)
    for unit in plan.dealt:
        own = [one for one in receipts if one.target == unit.target]
        assert own[0].starts == unit.starts
        assert own[-1].ends == unit.ends
        assert all(one.ends == other.starts for one, other in pairwise(own))


@pytest.mark.parametrize("step", ["append_receipts", "commit"])
def test_a_zombie_wakes_after_a_newer_run_has_finished(units: Units, step: str) -> None:
    with units.lab.runs() as runs:
        plan = units.plan(runs)
        with pytest.raises((Superseded, Retryable)):
            copy_units(runs, units, plan, 0, Hooks(before={step: units.run}))
    assert units.assert_once() == 1_500


def test_a_run_that_ended_early_is_gone_on_with_by_the_next_plan_and_a_changed_transform_waits(units: Units) -> None:
    def killed() -> None:
        raise Killed

    with units.lab.runs() as runs:
        plan = units.plan(runs)
        with pytest.raises(Killed):
            copy_units(runs, units, plan, 0, Hooks(after={"commit": killed}))
    send(producer(units.lab.source), units.topic, messages(500, start=1_500))

    few = units.with_rule(
        lambda _p, _o, key: key is not None and key[-1] % 2 == 0,
        TARGETS + 2,
        **{"ferry.transform.small.where": "key IS NOT NULL"},
    )
    with few.lab.runs() as runs:
        finishing = few.plan(runs)
        assert {(unit.since, unit.transform_digest) for unit in finishing.dealt} == {
            (plan.generation, plan.dealt[0].transform_digest)
        }
        assert "transform.finishing" in codes(finishing.notes)
        assert not finishing.changes
        units.copy(runs, finishing)  # what the old rule has begun is finished by it
        assert runs.report(finishing.run).state is RunState.SUCCESS
        begun = few.plan(runs)
        assert [(change.kind, change.partitions) for change in begun.changes] == [(ChangeKind.GROW, TARGETS + 2)]
        assert {unit.since for unit in begun.dealt} == {begun.generation}
        few.copy(runs, begun)
        era = eras(settled(runs), runs.lane)[units.target]
        assert not runs.unfinished_slices(begun)
        assert not few.plan(runs).dealt
    assert (era.since, era.partitions) == (begun.generation, TARGETS + 2)

    wanted: dict[int, list[tuple[object, ...]]] = defaultdict(list)
    for partition, records in sorted(read_topic(units.lab.source.bootstrap, units.topic).items()):
        for row in records:
            offset, key, *_ = row
            rule = units if offset < era.begins[partition] else few
            if rule.kept(partition, offset, key):
                wanted[partition_of_record(key, partition, offset, rule.partitions)].append(row[1:])
    got = read_topic(units.lab.target.bootstrap, units.target)
    assert set(got) == set(range(TARGETS + 2))
    for number, rows in got.items():
        assert sorted(repr(tuple(row)) for _, *row in rows) == sorted(map(repr, wanted[number])), number
    assert 0 < sum(map(len, wanted.values())) < 2_000


def test_what_others_wrote_to_a_copy_stops_its_partition_alone(units: Units, tmp_path: Path) -> None:
    file, first = units.lab.write(tmp_path), units.run()
    shown = ferry("ledger", "--run", first.run, "--json", config=file).json("ledger")
    assert sum(one["records"] for one in shown["units"]) == 1_500
    assert shown["receipts"] == []
    assert "into 3 partitions of" in " ".join(shown["run"]["report"]["notes"])
    nowhere = ferry("ledger", "--topic", units.topic, "--offset", "3", config=file)
    assert "source partition of --offset 3" in nowhere.err
    place = ["--topic", units.topic, "--partition", "2", "--offset"]
    there = ferry("ledger", *place, "3", "--json", config=file)
    assert there.code == 0
    shown = there.json("ledger-offset")["dealt"]
    assert [(one["target_partition"], one["offset"], one["without_key"]) for one in shown] == [
        (number, "passed", number == (2 + 3) % 3) for number in range(TARGETS)
    ]
    value = read_topic(units.lab.source.bootstrap, units.topic)[2][3][2]
    (at,) = [
        (number, row[0])
        for number, rows in read_topic(units.lab.target.bootstrap, units.target).items()
        for row in rows
        if row[2] == value
    ]
    chunk = shown[at[0]]["chunk"]
    assert chunk["target_start"] <= at[1] < chunk["target_next"]
    assert "3 of 3 target partitions " in ferry("ledger", *place, "3", config=file).out
    ahead = ferry("ledger", *place, "999999", "--json", config=file)
    assert (ahead.code, {one["offset"] for one in ahead.json("ledger-offset")["dealt"]}) == (1, {"ahead"})
    with FlowWatch(units.lab.flow, patience_s=ANSWER_S) as watch:
        dealt = watch.dealt(units.topic)
        assert dealt is not None
        assert sum(one.records for ones in dealt.receipts.values() for one in ones) == 1_500
        assert watch.dealt("no-such-topic") is None
    send(producer(units.lab.target), units.target, [Message(key=b"strange", value=b"x", partition=1)])
    assert {lag.records for lag in measure_lag(units.lab.flow)} == {0}
    with Verifier(units.lab.flow, Wanted()) as verifier:
        found = verifier.survey()
        result = verifier.sum_up(found, verifier.compare(found))
    assert [(one.source.topic, one.why) for one in result.not_compared] == [(units.topic, NotComparedKind.NEEDS_SPARK)]
    assert not result.is_equal
    send(producer(units.lab.source), units.topic, messages(300, start=1_500))
    assert sum(lag.records or 0 for lag in measure_lag(units.lab.flow)) == 300
    preview = ferry("plan", "--json", config=file).json("plan")
    assert {one["target_partition"]: one["offsets"] for one in preview["units"]} == {0: 300, 2: 300}
    assert "2 units" in ferry("plan", config=file).out
    with units.lab.runs() as runs:
        plan = runs.open_run("r-strange", local_origin())
        assert [(one.partition, one.kind) for one in plan.refusals] == [(1, RefusalKind.FOREIGN_WRITER)]
        assert {unit.target.partition for unit in plan.dealt} == {0, 2}
        units.copy(runs, plan)
        report = runs.report(plan.run)
        assert report.state is RunState.PARTIAL
        assert report.records == sum(unit.records for unit in report.dealt) > 0
        assert not report.unfinished
    assert sum(lag.records or 0 for lag in measure_lag(units.lab.flow)) == 300  # one partition lacks some of them


def test_a_topic_that_was_copied_the_other_way_is_refused_either_way(units: Units) -> None:
    plain = replace(units.lab, settings={"ferry.chunk.bytes": "60000"})
    units.run()
    with plain.runs() as runs:
        (refusal,) = runs.open_run("r-plain", local_origin()).refusals
    assert refusal.kind is RefusalKind.TRANSFORM
    assert "repartitioned into 3 partitions" in refusal.message

    other = replace(plain, alias=new_alias())
    other.micro_run()
    with lab_of(other, units.topic).runs() as runs:
        (refusal,) = runs.open_run("r-dealt", local_origin()).refusals
    assert refusal.code == "transform.copied-before"


def test_what_somebody_passes_by_hand_is_passed_for_all_target_partitions(units: Units, tmp_path: Path) -> None:
    units.run()
    ends = {number: len(rows) for number, rows in read_topic(units.lab.source.bootstrap, units.topic).items()}
    send(producer(units.lab.source), units.topic, messages(300, start=1_500))
    start, to = ends[2], ends[2] + 20
    skip = ("skip", str(units.lab.flow.flow), units.topic, "2", "--to", str(to))
    told = ferry(*skip, "--reason", "its batch is torn", config=units.lab.write(tmp_path))
    assert told.code == 0, told.err
    units.run()
    assert units.assert_once(lambda part, offset, _: part != 2 or not start <= offset < to) == 1_800 - 20
