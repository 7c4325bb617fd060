"""Somebody else writes to the copies: before a plan, between plan and copy, and between two chunks."""

from __future__ import annotations

from dataclasses import replace

from ferry.decide.ledger.report import RunState
from ferry.dev import RunningCluster
from ferry.errors import Retryable
from ferry.model import RefusalKind
from ferry.run.micro_run import local_origin
from tests.harness import Lab, Message, create_topic, delete_topic, new_alias, numbered, producer, read_topic, send
from tests.run.hooks import Hooks, copy_held


def meddle(lab: Lab, topic: str, count: int = 1) -> None:
    """A producer that is not Ferry's writes to a copy."""
    send(producer(lab.target), lab.target_topic(topic), [Message(value=b"foreign")] * count)


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
        plan = runs.plan("one", local_origin())
        meddle(lab, late)  # between plan and copy
        report = lab.copy(runs, plan)
    assert (report.state, report.records) == (RunState.FAILED, 0)
    said = {refusal.topic: (refusal.kind, refusal.message) for refusal in report.refusals}
    assert {kind for kind, _ in said.values()} == {RefusalKind.FOREIGN_WRITER}
    assert f"{lab.target_topic(early)}-0, at offset 11, behind our last record at 9" in said[early][1]
    assert "at offset 11, after run one was planned" in said[late][1]

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
        plan = runs.plan("two", local_origin())

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
    """Somebody's topic has the copy's name; then the ledger is lost, and all would be copied once more."""
    taken, free = names = [f"{topic}-taken", f"{topic}-free"]
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=tuple(names))
    for name in names:
        create_topic(source_cluster, name)
        send(producer(source_cluster), name, numbered(3))
    create_topic(target_cluster, lab.target_topic(taken))
    meddle(lab, taken, 2)

    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.PARTIAL, 3)
    (refusal,) = report.refusals
    assert (refusal.topic, refusal.kind) == (taken, RefusalKind.FOREIGN_WRITER)
    assert f"{lab.target_topic(taken)}-0 already holds records, from offset 0 on" in refusal.message
    tolerant = replace(lab, settings={"ferry.guard.foreign.writer": "skip"})
    report = tolerant.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 3)
    assert any("copied behind it, as ferry.guard.foreign.writer says" in note for note in report.plan.notes)
    assert report.plan.lifted == (RefusalKind.FOREIGN_WRITER,)
    assert keys(lab, taken) == [b"foreign", b"foreign", b"0", b"1", b"2"]
    assert lab.micro_run().state is RunState.SUCCESS, "what was accepted stays so"

    with lab.runs() as runs:
        ledger = runs._ledger.place.topic
    delete_topic(target_cluster, ledger)
    with lab.runs() as runs:
        assert {refusal.topic for refusal in runs.preview().refusals} == set(names)
    assert lab.micro_run().state is RunState.FAILED
    assert keys(lab, free) == [b"0", b"1", b"2"]
