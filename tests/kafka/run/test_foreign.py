"""Somebody else writes to the copies, also in transactions: before a plan, before the copy, between two chunks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster
from ferry.ledger.ledger import gaps
from ferry.ledger.report import RunState
from ferry.model import Fact, Refusal, RefusalKind, TopicChange
from ferry.plan import plan_run
from ferry.plan.change_topics import Changed, LastLook, change_topics
from ferry.run.micro_run import local_origin
from tests.harness import (
    Lab,
    Message,
    create_topic,
    delete_topic,
    new_alias,
    numbered,
    producer,
    read_topic,
    send,
    wait_until,
    whole_ledger,
)
from tests.kafka.run.hooks import Hooks, copy_held
from tests.said import codes
from tests.tiers import ANSWER_S


def meddle(lab: Lab, topic: str, count: int = 1) -> None:
    """A producer that is not Ferry's writes to a copy."""
    send(producer(lab.target), lab.target_topic(topic), [Message(value=b"foreign")] * count)


def begin(cluster: RunningCluster, name: str, *topics: str) -> Producer:
    """A producer that is not Ferry's with one record in each topic, in a transaction that it has not ended."""
    client = producer(cluster, transactional_id=name)
    client.init_transactions(ANSWER_S)
    client.begin_transaction()
    for topic in topics:
        send(client, topic, [Message(value=b"foreign")])
    return client


def said(refusal: Refusal) -> tuple[str, dict[str, Fact]]:
    """Code and facts of a refusal; its words are in tests/sentences."""
    return refusal.code, dict(refusal.facts)


def keys(lab: Lab, topic: str) -> list[bytes]:
    """A copy's values up to their first colon, in order."""
    rows = read_topic(lab.target.bootstrap, lab.target_topic(topic))[0]
    return [(row[2] or b"").partition(b":")[0] for row in rows]


def test_what_somebody_else_wrote_is_refused_wherever_it_comes_and_left_alone_where_the_guard_says_so(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    early, late, busy = names = [f"{topic}-{end}" for end in ("early", "late", "busy")]
    client = producer(source_cluster, batch_num_messages=50)
    for name in names:
        create_topic(source_cluster, name)
        send(client, name, numbered(10))
    settings = {"tasks.max": "1", "ferry.chunk.bytes": "20000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names), settings=settings)
    assert lab.micro_run().records == 30

    # Before the plan: behind our ten records and their marker.
    meddle(lab, early, 3)
    for name in (early, late):
        send(client, name, numbered(5, start=10))
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        meddle(lab, late)  # between plan and copy
        report = lab.copy(runs, plan)
    assert (report.state, report.records) == (RunState.FAILED, 0)
    found = {refusal.topic: refusal for refusal in report.refusals}
    assert {refusal.kind for refusal in found.values()} == {RefusalKind.FOREIGN_WRITER}
    place = f"{lab.target_topic(early)}-0"
    assert said(found[early]) == ("foreign.record.behind", {"place": place, "offset": 11, "ours": 9})
    code, facts = said(found[late])
    assert (code, facts["at"], facts["run"]) == ("foreign.since-plan", 11, "one")

    tolerant = replace(lab, settings={**settings, "ferry.guard.foreign.writer": f"fail, skip:{early}, skip:{late}"})
    report = tolerant.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 10), report.refusals
    assert [(gap.source.topic, gap.start, gap.end, gap.why) for gap in report.plan.gaps] == [
        (name, 10, 10, RefusalKind.FOREIGN_WRITER) for name in sorted((early, late))
    ]
    numbers = [b"%d" % number for number in range(15)]
    assert keys(lab, early) == [*numbers[:10], *[b"foreign"] * 3, *numbers[10:]]
    assert keys(lab, late) == [*numbers[:10], b"foreign", *numbers[10:]]
    assert (lab.micro_run().state, lab.micro_run().plan.gaps) == (RunState.SUCCESS, ()), "what was accepted stays so"

    # Between two chunks, then what an aborted chunk left behind, which is nobody's.
    send(client, busy, numbered(1_000, start=10, size=200))
    with lab.runs() as runs:
        plan = runs.open_run("two", local_origin())

        def stumble() -> None:
            raise Retryable("the network was away")

        result = copy_held(
            runs, plan, 0, Hooks(before={"append_receipts": stumble}, after={"commit": lambda: meddle(lab, busy)})
        )
    (refusal,) = result.refusals.values()
    assert (refusal.topic, refusal.kind) == (busy, RefusalKind.FOREIGN_WRITER)
    assert result.retries == 2, "one for the network, one for a batch that came to lie elsewhere"
    assert sum(receipt.records for receipt in result.receipts) < 1_000
    copied = lab.micro_run()
    assert [refusal.kind for refusal in copied.refusals] == [RefusalKind.FOREIGN_WRITER]
    tolerant = replace(lab, settings={"ferry.guard.foreign.writer": "skip"})
    assert tolerant.micro_run().state is RunState.SUCCESS
    assert [key for key in keys(lab, busy) if key != b"foreign"] == [b"%d" % number for number in range(1_010)]


def test_a_copy_that_holds_records_without_a_receipt_is_not_copied_into_unless_the_guard_says_so(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """Somebody's topic has the copy's name, or got records before the first of ours; then the ledger is lost."""
    taken, free, void = names = [f"{topic}-{end}" for end in ("taken", "free", "void")]
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names))
    for name in (taken, free):
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, numbered(3))
    create_topic(target_cluster, lab.target_topic(taken))
    meddle(lab, taken, 2)
    create_topic(source_cluster, void)
    aborting = begin(source_cluster, topic, void)
    aborting.abort_transaction(ANSWER_S)

    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 3)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.kind) == (taken, RefusalKind.FOREIGN_WRITER)
    assert said(refusal) == ("foreign.occupied", {"place": f"{lab.target_topic(taken)}-0", "offset": 0})
    meddle(lab, void)  # its receipt is of an aborted transaction: none of ours lies before
    refusal = lab.micro_run().refusals[-1]
    assert (refusal.topic, refusal.kind) == (void, RefusalKind.FOREIGN_WRITER)
    assert said(refusal) == ("foreign.record", {"place": f"{lab.target_topic(void)}-0", "offset": 0})
    tolerant = replace(lab, settings={"ferry.guard.foreign.writer": "skip"})
    report = tolerant.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 3)
    assert "passed.copied-behind" in codes(report.plan.notes)
    found = [(gap.source.topic, gap.start, gap.end, gap.why) for gap in report.plan.gaps]
    assert (taken, 0, 0, RefusalKind.FOREIGN_WRITER) in found
    assert {why for *_, why in found} == {RefusalKind.FOREIGN_WRITER}
    assert report.plan.lifted == ()
    with lab.runs() as runs:
        assert taken in {gap.source.topic for gap in gaps(whole_ledger(runs), lab.flow.lane)}, (
            "the ledger says so for good"
        )
    assert keys(lab, taken) == [b"foreign", b"foreign", b"0", b"1", b"2"]
    assert lab.micro_run().state is RunState.SUCCESS, "what was accepted stays so"

    with lab.runs() as runs:
        ledger = runs.ledger_topic.place.topic
    delete_topic(target_cluster, ledger)
    with lab.runs() as runs:
        assert {refusal.topic for refusal in runs.preview().refusals} == set(names)
    assert lab.micro_run().state is RunState.FAILED
    assert keys(lab, free) == [b"0", b"1", b"2"]


def test_a_strangers_records_in_a_copy_that_was_created_again_have_a_guard_of_their_own(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(3))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().records == 3
    copy = lab.target_topic(topic)
    delete_topic(target_cluster, copy)
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    wait_until(lambda: copy not in admin.list_topics(timeout=ANSWER_S).topics, "the end of the deleted topic")
    create_topic(target_cluster, copy)
    meddle(lab, topic, 2)
    (refusal,) = lab.micro_run().refusals
    assert refusal.kind is RefusalKind.TARGET_CHANGED
    again = replace(lab, settings={"ferry.guard.target.changed": "restart"})
    with again.runs() as runs:
        (refusal,) = runs.preview().refusals
        assert refusal.kind is RefusalKind.FOREIGN_WRITER, "a plan says so, too"
    (refusal,) = again.micro_run().refusals
    assert refusal.kind is RefusalKind.FOREIGN_WRITER
    assert said(refusal) == ("foreign.record", {"place": f"{copy}-0", "offset": 0})
    both = replace(lab, settings={**again.settings, "ferry.guard.foreign.writer": "skip"})
    report = both.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 3)
    assert {gap.why for gap in report.plan.gaps} == {RefusalKind.TARGET_CHANGED, RefusalKind.FOREIGN_WRITER}
    assert keys(lab, topic) == [b"foreign", b"foreign", b"0", b"1", b"2"]
    assert lab.micro_run().state is RunState.SUCCESS


def test_a_strangers_transaction_is_refused_while_it_is_open_and_judged_by_its_end(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """Its records can not be seen yet; once the lane had copied behind them nobody would look there again."""
    kept, gone, fresh, let = names = [f"{topic}-{end}" for end in ("kept", "gone", "fresh", "let")]
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names))
    lab = replace(lab, settings={"ferry.guard.foreign.writer": f"fail, skip:{let}"})
    client = producer(source_cluster)
    for name in (kept, gone, let):
        create_topic(source_cluster, name)
        send(client, name, numbered(10))
    assert lab.micro_run().records == 30
    create_topic(source_cluster, fresh)
    create_topic(target_cluster, lab.target_topic(fresh))
    for name in names:
        send(client, name, numbered(5, start=10))
    committing = begin(target_cluster, f"{topic}-c", lab.target_topic(kept), lab.target_topic(let))
    aborting = begin(target_cluster, f"{topic}-a", lab.target_topic(gone), lab.target_topic(fresh))

    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 5)
    found = {refusal.topic: refusal for refusal in report.refusals}
    assert {name: refusal.kind for name, refusal in found.items()} == dict.fromkeys(
        (kept, gone, fresh), RefusalKind.FOREIGN_WRITER
    )
    for name, start, writer in ((kept, 11, "c"), (gone, 11, "a"), (fresh, 0, "a")):
        code, facts = said(found[name])
        whose = str(facts.pop("whose"))
        target = lab.target_topic(name)
        assert (code, facts) == (
            "foreign.open",
            {"where": f"target {target}-0", "target": target, "number": 0, "start": start},
        )
        assert f"{topic}-{writer}" in whose
    ((gap, why),) = [(gap.source.topic, gap.why) for gap in report.plan.gaps]
    assert (gap, why) == (let, RefusalKind.FOREIGN_WRITER)
    with lab.runs() as runs:
        assert {refusal.topic for refusal in runs.preview().refusals} == {kept, gone, fresh}

    committing.commit_transaction(ANSWER_S)
    aborting.abort_transaction(ANSWER_S)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 10)
    (refusal,) = report.refusals
    assert refusal.topic == kept
    code, facts = said(refusal)
    assert (code, facts["place"], facts["offset"]) == ("foreign.record.behind", f"{lab.target_topic(kept)}-0", 11)
    numbers = [b"%d" % number for number in range(15)]
    assert keys(lab, kept) == [*numbers[:10], b"foreign"]
    assert keys(lab, let) == [*numbers[:10], b"foreign", *numbers[10:]]
    assert (keys(lab, gone), keys(lab, fresh)) == (numbers, numbers[10:])
    strict = replace(lab, settings={})
    assert {refusal.topic for refusal in strict.micro_run().refusals} == {kept}, "what was accepted stays so"


def test_a_transaction_that_a_stranger_begins_while_a_run_is_at_work_is_found_and_the_runs_own_is_not_taken_for_one(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    late, busy = names = [f"{topic}-{end}" for end in ("late", "busy")]
    settings = {"tasks.max": "1", "ferry.chunk.bytes": "20000"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names), settings=settings)
    client = producer(source_cluster, batch_num_messages=50)
    for name in names:
        create_topic(source_cluster, name)
        send(client, name, numbered(10))
    assert lab.micro_run().records == 20
    send(client, late, numbered(5, start=10))
    send(client, busy, numbered(1_000, start=10, size=200))
    foreign: list[Producer] = []
    found: list[set[str]] = []

    def meet(name: str) -> None:
        foreign.append(begin(target_cluster, f"{topic}-{name}", lab.target_topic(name)))

    def preview() -> None:
        with lab.runs() as others:
            found.append({refusal.topic for refusal in others.preview().refusals})

    with lab.runs() as runs:
        plan = runs.open_run("two", local_origin())
        meet(late)  # between plan and copy
        hooks = Hooks(before={"commit": preview}, after={"commit": lambda: meet(busy)})
        result = copy_held(runs, plan, 0, hooks)
    assert found == [{late}], "busy has a transaction open, too: the run's own"
    assert {refusal.topic: refusal.kind for refusal in result.refusals.values()} == dict.fromkeys(
        names, RefusalKind.FOREIGN_WRITER
    )
    assert {refusal.code for refusal in result.refusals.values()} == {"foreign.open.at-work"}
    assert 0 < sum(receipt.records for receipt in result.receipts) < 1_000
    for stranger in foreign:
        stranger.abort_transaction(ANSWER_S)
    assert lab.micro_run().state is RunState.SUCCESS
    assert keys(lab, busy) == [b"%d" % number for number in range(1_010)]
    assert lab.assert_equal() == 1_025


def test_what_somebody_writes_while_topics_are_created_for_the_plan_is_found(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is decided anew behind the changes, by the ends of then: the look goes as far."""
    known, created = names = [f"{topic}-{end}" for end in ("known", "created")]
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names))
    create_topic(source_cluster, known)
    send(producer(source_cluster), known, numbered(10))
    assert lab.micro_run().records == 10
    create_topic(source_cluster, created)
    for name in names:
        send(producer(source_cluster), name, numbered(5, start=10))

    async def changing(cluster: Cluster, changes: Collection[TopicChange], last_look: LastLook) -> Changed:
        done = await change_topics(cluster, changes, last_look)
        for name in names:
            meddle(lab, name)
        return done

    monkeypatch.setattr(plan_run, "change_topics", changing)
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.FAILED, 0)
    assert {refusal.topic: refusal.kind for refusal in report.refusals} == dict.fromkeys(
        names, RefusalKind.FOREIGN_WRITER
    )
