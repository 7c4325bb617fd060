"""Guards on real brokers: topics created again on both sides, gone, cut, and what each policy makes of it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.clock import wall_ms
from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.dev.broker import Broker
from ferry.errors import Refused
from ferry.features.groups.acts.of_run import sync_groups
from ferry.features.groups.acts.translate import translate, translate_group
from ferry.features.groups.rules.offset_map import Exact
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import Rows
from ferry.features.records.acts.source_logs import Marks, seen_before
from ferry.ledger.history import current_segments
from ferry.ledger.ledger import gaps
from ferry.ledger.receipts import receipts
from ferry.ledger.report import Report, RunState
from ferry.ledger.units import read_ranges
from ferry.model import Fact, Plan, Receipt, Refusal, RefusalKind, TopicPartition, Why
from ferry.protocol.slot import SlotProgress
from ferry.run.micro_run import local_origin
from tests.harness import (
    Lab,
    commit_offsets,
    committed_offsets,
    create_topic,
    create_topics,
    delete_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    wait_until,
    whole_ledger,
)
from tests.program import warm_ferry as ferry
from tests.pure.run.unit_flows import Units
from tests.said import codes, data_of
from tests.tiers import ANSWER_S

RESTARTING = {
    "ferry.guard.topic.recreated": "restart",
    "ferry.guard.target.changed": "fail, restart:.*-gone, restart:.*-new",
}


def values(bootstrap: str, topic: str) -> list[int]:
    """The numbers of a topic's records (tests.harness.numbered), in order."""
    return [int((row[2] or b"").partition(b":")[0]) for row in read_topic(bootstrap, topic)[0]]


def assert_map_is_true(lab: Lab, topic: str) -> None:
    """The offset map names each record of the source's log that was copied, where it lies, and nothing else."""
    with lab.runs() as runs:
        view = whole_ledger(runs)
    written = list(receipts(view, topic=topic))
    where = {
        segment.source_start + index: segment.target_start + index
        for segment in current_segments(written, gaps(view, "live"))
        for index in range(segment.count)
    }
    there = {row[0]: row[1:] for row in read_topic(lab.target.bootstrap, lab.target_topic(topic))[0]}
    for row in read_topic(lab.source.bootstrap, topic)[0]:
        assert there[where[row[0]]] == row[1:], f"offset {row[0]} of {topic}"


def decided(report: Report) -> list[tuple[str, RefusalKind, str]]:
    return sorted((gap.source.topic, gap.why, gap.how.value) for gap in report.plan.gaps)


def test_what_was_created_again_or_is_gone_is_copied_again_behind_what_is_there(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    again, gone, new, plain = names = [f"{topic}-{end}" for end in ("again", "gone", "new", "plain")]
    client = producer(source_cluster)
    for name in names:
        create_topic(source_cluster, name)
        send(client, name, numbered(30))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names))
    assert lab.micro_run().records == 120
    delete_topic(source_cluster, again)
    for name in (gone, new):
        delete_topic(target_cluster, lab.target_topic(name))
    create_topic(target_cluster, lab.target_topic(new))
    create_topic(source_cluster, again)
    send(producer(source_cluster), again, numbered(40, start=1_000))
    send(client, plain, numbered(5, start=30))

    refused = lab.micro_run()
    assert (refused.state, refused.records) == (RunState.PARTIAL, 5)
    assert {refusal.topic: refusal.kind for refusal in refused.refusals} == {
        again: RefusalKind.TOPIC_RECREATED,
        gone: RefusalKind.TARGET_CHANGED,
        new: RefusalKind.TARGET_CHANGED,
    }

    restarting = replace(lab, settings=RESTARTING)
    report = restarting.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 100), report.refusals
    assert decided(report) == [
        (again, RefusalKind.TOPIC_RECREATED, "restart"),
        (gone, RefusalKind.TARGET_CHANGED, "restart"),
        (new, RefusalKind.TARGET_CHANGED, "restart"),
    ]
    assert all(name in "".join(report.plan.notes) for name in (again, gone, new))
    at_target = target_cluster.bootstrap
    assert values(at_target, lab.target_topic(again)) == [*range(30), *range(1_000, 1_040)]
    assert values(at_target, lab.target_topic(gone)) == list(range(30))
    assert values(at_target, lab.target_topic(new)) == list(range(30))

    # The next run follows the receipts: nothing is decided twice.
    send(client, gone, numbered(10, start=30))
    after = restarting.micro_run()
    assert (after.state, after.records, after.plan.gaps, after.plan.notes) == (RunState.SUCCESS, 10, (), ())
    for name in (again, gone, new, plain):
        assert_map_is_true(lab, name)

    config = restarting.write(tmp_path)
    answer = ferry("ledger", "--topic", again, "--offset", "12", "--json", config=config).json("ledger-offset")
    old, now = answer["receipts"]
    assert (old["target_offset"], old["void"]["why"], old["void"]["run"]) == (12, "topic-recreated", report.plan.run)
    assert (now["target_offset"], now["void"], now["since"]) == (12 + 31, None, report.plan.generation)
    said = ferry("run", "--json", config=config).json("run")
    assert (said["gaps"], said["guards"]) == ([], {})


def test_a_copy_that_is_gone_or_another_one_goes_on_where_the_lane_stands_if_the_guard_says_skip(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    names = [f"{topic}-{end}" for end in ("gone", "new")]
    client = producer(source_cluster)
    for name in names:
        create_topic(source_cluster, name)
        send(client, name, numbered(30))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names))
    assert lab.micro_run().records == 60
    for name in names:
        delete_topic(target_cluster, lab.target_topic(name))
        send(client, name, numbered(10, start=30))
    create_topic(target_cluster, lab.target_topic(f"{topic}-new"))
    skipping = replace(lab, settings={"ferry.guard.target.changed": "skip"})
    report = skipping.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 20), report.refusals
    assert decided(report) == [(name, RefusalKind.TARGET_CHANGED, "skip") for name in names]
    assert [(gap.start, gap.end, gap.void_from) for gap in report.plan.gaps] == [(0, 30, 0)] * 2
    for name in names:
        assert values(target_cluster.bootstrap, lab.target_topic(name)) == list(range(30, 40))
    after = skipping.micro_run()
    assert (after.state, after.records, after.plan.gaps) == (RunState.SUCCESS, 0, ())


def test_another_cluster_under_the_alias_is_refused_whole_or_copied_behind_the_old_one(
    source_cluster: RunningCluster, target_cluster: RunningCluster, three_brokers: RunningCluster, topic: str
) -> None:
    for cluster, start in ((source_cluster, 0), (three_brokers, 1_000)):
        create_topic(cluster, topic)
        send(producer(cluster, enable_idempotence=True), topic, numbered(20, start=start))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 20
    moved = replace(lab, source=three_brokers)
    with pytest.raises(Refused) as refused:
        moved.micro_run()
    assert data_of(refused.value)[0] == "source.cluster-changed"
    restarting = replace(moved, settings={"ferry.guard.cluster.changed": "restart"})
    report = restarting.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 20), report.refusals
    assert decided(report) == [(topic, RefusalKind.CLUSTER_CHANGED, "restart")]
    assert values(target_cluster.bootstrap, lab.target_topic(topic)) == [*range(20), *range(1_000, 1_020)]
    assert moved.micro_run().state is RunState.SUCCESS, "it follows the receipts, which are of that cluster now"
    assert_map_is_true(moved, topic)


def test_swapped_aliases_and_a_clock_that_is_off_are_refused_before_anything_is_copied(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 10
    swapped = replace(lab, source=target_cluster, target=source_cluster)
    with pytest.raises(Refused) as refused:
        swapped.micro_run()
    code, facts = data_of(refused.value)
    assert (code, facts["source"], facts["target"]) == ("clusters.swapped", lab.alias, f"t{lab.alias}")
    send(producer(source_cluster), topic, numbered(10, start=10))
    monkeypatch.setattr("ferry.kafka.produce.appending.wall_ms", lambda: wall_ms() + 3_600_000)
    with pytest.raises(Refused) as refused:
        lab.micro_run()
    code, facts = data_of(refused.value)
    assert (code, int(facts["seconds"]) // 1_000) == ("clock.skew", 3)
    report = replace(lab, settings={"ferry.guard.clock.skew": "skip"}).micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 10)
    assert codes(report.plan.notes) == ["passed.clock"]
    assert report.plan.lifted == (RefusalKind.CLOCK_SKEW,)


def test_a_compacted_topic_that_was_not_looked_at_for_too_long_is_refused(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """Of a millisecond, so that any rest is too long."""
    create_topic(source_cluster, topic, config={"cleanup.policy": "compact", "delete.retention.ms": "1"})
    client = producer(source_cluster)
    send(client, topic, numbered(10))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 10
    assert lab.micro_run().state is RunState.SUCCESS, "nothing came, so nothing was missed"
    send(client, topic, numbered(5, start=10))
    refused = lab.micro_run()
    assert [refusal.kind for refusal in refused.refusals] == [RefusalKind.TOMBSTONES_PASSED]
    skipping = replace(lab, settings={"ferry.guard.tombstones.passed": "skip"})
    report = skipping.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 5)
    assert decided(report) == [(topic, RefusalKind.TOMBSTONES_PASSED, "skip")]


def test_a_lane_that_read_an_open_transaction_waits_for_its_end_when_it_reads_committed_records(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """The last stable offset lies before what was copied: that is no cut, also where a cut would be gone back to."""
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(3))
    writer = producer(source_cluster, transactional_id=f"{topic}-writer")
    writer.init_transactions(ANSWER_S)
    writer.begin_transaction()
    send(writer, topic, numbered(5, start=3))
    alias = new_alias()
    uncommitted = {f"{alias}.consumer.isolation.level": "read_uncommitted"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=uncommitted)
    assert lab.micro_run().records == 8
    lab = replace(lab, settings={"ferry.guard.source.truncated": "restart"})
    waiting = lab.micro_run()
    assert (waiting.refusals, waiting.plan.slices, waiting.plan.gaps) == ((), (), ())
    writer.commit_transaction(ANSWER_S)
    send(producer(source_cluster), topic, numbered(2, start=8))
    report = lab.micro_run()
    assert (report.state, report.records, report.plan.gaps) == (RunState.SUCCESS, 2, ())
    assert values(target_cluster.bootstrap, lab.target_topic(topic)) == list(range(10))
    assert_map_is_true(lab, topic)


def test_a_log_that_was_cut_by_an_unclean_election_is_refused_and_then_copied_from_where_it_was_cut(
    three_brokers: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """The leader's last records are lost with it, and others are written in their place: offsets alone tell nothing."""
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    create_topic(three_brokers, topic, config=unclean, replicas=2)
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})

    def partition() -> tuple[int, Sequence[int], Sequence[int]]:
        found = admin.list_topics(topic).topics[topic].partitions.get(0)
        return (found.leader, found.replicas, found.isrs) if found is not None else (-1, (), ())

    wait_until(lambda: len(partition()[2]) == 2, "two replicas in sync")
    lab = Lab(source=three_brokers, target=target_cluster, alias=new_alias(), topics=(topic,))
    # Idempotent: a topic that was just placed may refuse its first batch, and the second would come before it.
    client = producer(three_brokers, linger_ms=200, enable_idempotence=True)
    send(client, topic, numbered(50))
    leader, replicas, _ = partition()
    first, second = (node(three_brokers, number) for number in (leader, *(one for one in replicas if one != leader)))
    # The same happens to a copy that has its replicas on the same brokers, of a flow in the other direction.
    back, away = f"{topic}-back", producer(target_cluster, linger_ms=200)
    other = Lab(source=target_cluster, target=three_brokers, alias=new_alias(), topics=(back,))
    placed(three_brokers, other.target_topic(back), unclean, [leader, second.node_id])
    create_topic(target_cluster, back)
    send(away, back, numbered(50))
    assert other.micro_run().records == 50
    # And to one that somebody fills up again, beyond where the flow was.
    filled = filled_up(three_brokers, target_cluster, f"{topic}-filled", unclean, [leader, second.node_id])
    # And to a log of which a run has copied a part, beside one that stays as it is.
    half = Lab(
        source=three_brokers,
        target=target_cluster,
        alias=new_alias(),
        topics=(f"{topic}-half", f"{topic}-whole"),
        settings={"ferry.chunk.bytes": "1", "tasks.max": "1"},  # one batch of each partition
    )
    # And to one whose records pass through Spark, between the tasks that read and those that write.
    units = Units(replace(half, alias=new_alias(), topics=(f"{topic}-dealt",), settings={}), f"{topic}-dealt")
    third = next(broker.node_id for broker in three_brokers.brokers if broker not in (first, second))
    cut = [leader, second.node_id]
    for name, brokers in zip((*half.topics, units.topic), (cut, [third], cut), strict=True):
        placed(three_brokers, name, unclean, brokers)
        send(client, name, numbered(10))
    second.kill(signal.SIGTERM)
    wait_until(lambda: len(partition()[2]) == 1, "one replica in sync")
    for name in (*half.topics, units.topic):
        for start in (10, 20):
            send(client, name, numbered(10, start=start))
    send(client, topic, numbered(30, start=50))
    assert lab.micro_run().records == 80
    # Beside it a flow that is to go on where it stands, whatever comes.
    heedless = replace(lab, alias=new_alias(), settings={"ferry.guard.source.truncated": "skip"})
    assert heedless.micro_run().records == 80
    send(away, back, numbered(30, start=50))
    assert other.micro_run().records == 30
    begun = copied_in_part(half, f"{topic}-half", 20)
    under_way = planned_after(filled, 80)
    job = read_before(units)
    first.kill(signal.SIGTERM)
    second.start()
    wait_until(lambda: partition()[0] == second.node_id, "the second broker as the leader")
    send(producer(three_brokers, linger_ms=200), topic, numbered(40, start=1_000))

    assert_nothing_is_translated_from_where_it_was_cut(lab, topic)
    assert_the_new_log_is_copied_from_where_it_was_cut(lab, topic)
    assert_nothing_is_translated_from_where_it_was_cut(heedless, topic)
    assert_the_new_log_is_copied_from_where_the_lane_stands(heedless, topic)
    assert_what_the_copy_lost_is_copied_again(other, back)
    assert_a_cut_shows_although_others_have_filled_the_log_up(filled, under_way)
    for name in (half.topics[0], units.topic):
        send(producer(three_brokers, linger_ms=200), name, numbered(40, start=1_000))
    assert_the_rest_of_a_run_is_not_read_from_another_log(half, begun)
    assert_rows_that_were_read_before_a_cut_are_not_written(units, job)


class ReadJob(NamedTuple):
    """What a Spark job has when all is read: the plan, what was seen before, and the rows by slot."""

    plan: Plan
    seen: Marks
    rows: dict[int, list[pa.RecordBatch]]


def read_before(units: Units) -> ReadJob:
    with units.lab.runs() as runs:
        plan = units.plan(runs)
        options = runs.slot_task(plan, plan.row_slots[0], runs.begin(plan, local_origin())).source
        seen = seen_before(units.lab.alias, options, read_ranges(plan.dealt), patience_s=ANSWER_S)
    assert not seen.silent
    return ReadJob(plan, seen.marks, {slot: list(units.rows(plan, slot)) for slot in plan.row_slots})


def assert_rows_that_were_read_before_a_cut_are_not_written(units: Units, job: ReadJob) -> None:
    """Of the 30 records that were read 10 are left, with 40 others behind them: by its end the log looks whole."""
    with units.lab.runs() as runs:
        attempt = runs.begin(job.plan, local_origin())
        for slot, rows in job.rows.items():
            result, port_of = SlotProgress(), partial(RowSlot, rows=Rows(rows), seen=job.seen)
            spec = runs.slot_task(job.plan, slot, attempt)
            run_slot(spec, lambda: False, lambda _: None, result, port_of=port_of)
            assert not result.receipts
            assert {one.kind for one in result.refusals.values()} == {RefusalKind.SOURCE_TRUNCATED}
            ((code, facts),) = {(one.code, one.facts) for one in result.refusals.values()}
            assert (code, dict(facts)["end"], dict(facts)["cut"]) == ("source.truncated.before", 30, 10)
    units.run()  # nothing of it was copied: there is nothing to decide
    assert units.assert_once() == 50


def assert_nothing_is_translated_from_where_it_was_cut(lab: Lab, topic: str) -> None:
    """Before any run has seen that 50 to 79 are other records now: by hand, for groups, and on the way back."""
    place, copy = TopicPartition(topic, 0), TopicPartition(lab.target_topic(topic), 0)
    groups = {f"{lab.alias}-{at}": at for at in (30, 49, 50, 60, 80)}
    for name, at in groups.items():
        commit_offsets(lab.source, name, {(topic, 0): at})
    assert translate(lab.flow, place, 49).outcome == Exact(offset=49)
    assert translate(lab.flow, copy, 49, backward=True).outcome == Exact(offset=49)
    for at in (50, 60, 80):
        with pytest.raises(Refused, match=f"{topic}-0 from 50 "):
            translate(lab.flow, place, at)
        with pytest.raises(Refused, match=f"{topic}-0 from 50 "):
            translate(lab.flow, copy, at, backward=True)
    with lab.runs() as runs:
        _, done = sync_groups(runs, "after-the-cut", only=frozenset(groups))
    assert done is not None
    assert (done.groups, {one.group: one.why for one in done.left}) == (
        2,
        {name: Why.FAILED for name, at in groups.items() if at >= 50},
    )
    found = {name: committed_offsets(lab.target, name, lab.target_topic(topic), 1) for name in groups}
    assert found == {name: {0: at} if at < 50 else {} for name, at in groups.items()}
    told = translate_group(lab.flow, f"{lab.alias}-60")
    assert (told.found, [(at, offset) for at, offset, _ in told.troubled]) == ((), [(place, 60)])


def cut_of(refusal: Refusal) -> tuple[str, Fact, Fact]:
    """What a refusal of a truncated log names: its code, the end of what was copied or read, and the new end."""
    facts = dict(refusal.facts)
    return refusal.code, facts["end"], facts["cut"]


def assert_the_new_log_is_copied_from_where_it_was_cut(lab: Lab, topic: str) -> None:
    """Of 80 records that were copied the source has kept 50, and has 40 others behind them."""
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.FAILED, 0)
    (refusal,) = report.refusals
    assert refusal.kind is RefusalKind.SOURCE_TRUNCATED
    assert (refusal.topic, refusal.partition, cut_of(refusal)) == (topic, 0, ("source.diverged", 80, 50))
    report = replace(lab, settings={"ferry.guard.source.truncated": "restart"}).micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 40), report.refusals
    (gap,) = report.plan.gaps
    assert (gap.start, gap.end, gap.void_from) == (80, 50, 50)
    assert translate(lab.flow, TopicPartition(topic, 0), 60).outcome.offset > 80, "the new record, behind the lost ones"
    assert values(lab.target.bootstrap, lab.target_topic(topic)) == [*range(80), *range(1_000, 1_040)]
    assert lab.micro_run().state is RunState.SUCCESS
    assert_map_is_true(lab, topic)


def assert_the_new_log_is_copied_from_where_the_lane_stands(lab: Lab, topic: str) -> None:
    """Of 40 records behind the first 50 it copies the last ten: it had come to 80."""
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 10), report.refusals
    assert [(gap.start, gap.end, gap.void_from, gap.how.value) for gap in report.plan.gaps] == [(50, 80, 50, "skip")]
    assert values(lab.target.bootstrap, lab.target_topic(topic)) == [*range(80), *range(1_030, 1_040)]


def copied_in_part(lab: Lab, topic: str, end: int) -> Plan:
    """A run that was ended when it had copied a topic up to this source offset."""
    committed: list[Receipt] = []

    def is_there() -> bool:
        return any((receipt.source.topic, receipt.end) == (topic, end) for receipt in committed)

    with lab.runs() as runs:
        plan = runs.open_run("in-part", local_origin())
        (slot,) = plan.used_slots
        spec = runs.slot_task(plan, slot, runs.begin(plan, local_origin()))
        run_slot(spec, is_there, committed.extend)
    assert values(lab.target.bootstrap, lab.target_topic(topic)) == values(lab.source.bootstrap, topic)[:end]
    return plan


def assert_the_rest_of_a_run_is_not_read_from_another_log(lab: Lab, plan: Plan) -> None:
    """Of 30 records 20 were copied and 10 are left, with 40 others behind them; the second topic has lost none."""
    topic, other = lab.topics

    def copied(name: str) -> list[int]:
        return values(lab.target.bootstrap, lab.target_topic(name))

    assert copied(topic) == list(range(20))
    with lab.runs() as runs:
        report = lab.copy(runs, plan)
    assert (report.state, report.records) == (RunState.PARTIAL, 50)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.kind) == (topic, RefusalKind.SOURCE_TRUNCATED)
    assert cut_of(refusal) == ("source.truncated.read", 20, 10)
    assert (copied(topic), copied(other)) == (list(range(20)), list(range(30)))

    (refusal,) = lab.micro_run().refusals
    assert cut_of(refusal) == ("source.diverged", 20, 10)
    report = replace(lab, settings={"ferry.guard.source.truncated": "restart"}).micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 40), report.refusals
    assert copied(topic) == [*range(20), *range(1_000, 1_040)]
    assert_map_is_true(lab, topic)


def assert_what_the_copy_lost_is_copied_again(lab: Lab, topic: str) -> None:
    """50 of 80 records are left of the copy, and a marker."""
    report = lab.micro_run()
    assert [refusal.kind for refusal in report.refusals] == [RefusalKind.TARGET_CHANGED]
    # A broker that went may have cost the copy an attempt, whose offsets are lost as well.
    (refusal,) = report.refusals
    assert (refusal.code, int(dict(refusal.facts)["log_end"]) in range(50, 60)) == ("target.shorter", True)
    report = replace(lab, settings={"ferry.guard.target.changed": "restart"}).micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 30), report.refusals
    assert [(gap.start, gap.end, gap.void_from) for gap in report.plan.gaps] == [(80, 50, 50)]
    assert values(lab.target.bootstrap, lab.target_topic(topic)) == list(range(80))
    assert_map_is_true(lab, topic)


def filled_up(
    target: RunningCluster, source: RunningCluster, topic: str, config: dict[str, str], brokers: list[int]
) -> Lab:
    """A flow that lets others write to its copy, which is on these brokers and has 50 records."""
    lab = Lab(
        source=source,
        target=target,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.guard.foreign.writer": "skip"},
    )
    placed(target, lab.target_topic(topic), config, brokers)
    create_topic(source, topic)
    send(producer(source), topic, numbered(50))
    assert lab.micro_run().records == 50
    return lab


def planned_after(lab: Lab, end: int) -> Plan:
    """A plan for ten more records, when the flow has copied all before source offset `end` (from 50 on)."""
    (topic,) = lab.topics
    send(producer(lab.source), topic, numbered(end - 50, start=50))
    assert lab.micro_run().records == end - 50
    send(producer(lab.source), topic, numbered(10, start=end))
    with lab.runs() as runs:
        return runs.open_run("planned-before-the-cut", local_origin())


def assert_a_cut_shows_although_others_have_filled_the_log_up(lab: Lab, plan: Plan) -> None:
    """The copy has 50 of 80 records left, 60 of a stranger behind them, and the plan is for ten more."""
    (topic,) = lab.topics
    copy = lab.target_topic(topic)
    send(producer(lab.target), copy, numbered(60, start=5_000))
    with pytest.raises(Refused, match=rf"{copy}-0 .* \d+, .*truncated.* 5\d"):
        translate(lab.flow, TopicPartition(topic, 0), 60)
    with lab.runs() as runs:
        report = lab.copy(runs, plan)
    (refusal,) = report.refusals
    assert (report.records, refusal.kind) == (0, RefusalKind.TARGET_CHANGED)
    assert (refusal.code, int(dict(refusal.facts)["cut"]) in range(50, 60)) == ("target.cut.at-work", True)

    (refusal,) = lab.micro_run().refusals
    assert (refusal.kind, refusal.code) == (RefusalKind.TARGET_CHANGED, "target.cut")
    report = replace(lab, settings={**lab.settings, "ferry.guard.target.changed": "restart"}).micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 40), report.refusals
    assert (report.plan.gaps[0].start, report.plan.gaps[0].end, report.plan.gaps[0].void_from) == (80, 50, 50)
    assert values(lab.target.bootstrap, copy) == [*range(50), *range(5_000, 5_060), *range(50, 90)]
    assert_map_is_true(lab, topic)
    after = lab.micro_run()
    assert (after.state, after.records, after.plan.gaps) == (RunState.SUCCESS, 0, ())


def placed(cluster: RunningCluster, topic: str, config: dict[str, str], brokers: list[int]) -> None:
    """A topic of one partition whose replicas are on these brokers, the first of them its leader."""
    create_topics(cluster, [NewTopic(topic, num_partitions=1, config=config, replica_assignment=[brokers])])


def node(cluster: RunningCluster, number: int) -> Broker:
    """A broker of the cluster."""
    return next(broker for broker in cluster.brokers if broker.node_id == number)
