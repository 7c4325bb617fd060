"""Attempts and runs that outlive their time: whatever they still do, every record arrives once."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.copy.slot_end import end_of
from ferry.dev import RunningCluster
from ferry.errors import Retryable, Superseded
from ferry.kafka.admin.topics import transaction_state
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.lane.connections import manager_options
from ferry.ledger.report import RunState
from ferry.model import Attempt, Plan, Record, RefusalKind
from ferry.protocol.names import ledger_topic
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, delete_topic, new_alias, numbered, producer, read_topic, send, whole_ledger
from tests.kafka.run.hooks import Hooks, copy_held
from tests.program import finished, start
from tests.said import data_of
from tests.tiers import ANSWER_S


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """Four partitions with 4,000 records, two slots, chunks small enough for several per slot."""
    create_topic(source_cluster, topic, 4)
    send(producer(source_cluster, batch_num_messages=50), topic, numbered(4_000, partitions=4, size=500))
    return Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "300000"},
    )


def fewer_slots(lab: Lab) -> Lab:
    """The same flow with one slot."""
    return replace(lab, settings={**lab.settings, "tasks.max": "1"})


@pytest.mark.parametrize("step", ["append_receipts", "commit"])
def test_a_zombie_wakes_after_its_successor_finished_with_fewer_slots(lab: Lab, step: str) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("first", local_origin())
        hooks = Hooks(before={step: lambda: succeed(fewer_slots(lab))})
        with pytest.raises((Superseded, Retryable)):
            copy_held(runs, plan, plan.used_slots[-1], hooks)
        assert not hooks.before, "the zombie never came to the step"
    assert lab.assert_equal() == 4_000


def succeed(lab: Lab) -> None:
    """A whole later run."""
    assert lab.micro_run().state is RunState.SUCCESS


def test_copy_is_retried_while_the_first_attempt_still_lives(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())

        def second_attempt() -> None:
            lab.copy_slot(runs, plan, plan.used_slots[0])

        with pytest.raises(Superseded) as caught:
            copy_held(runs, plan, plan.used_slots[0], Hooks(before={"commit": second_attempt}))
        assert data_of(caught.value)[0] == "superseded.attempt"
        report = lab.copy(runs, plan)
    assert report.state is RunState.SUCCESS
    assert lab.assert_equal() == 4_000


def test_a_superseded_attempt_leaves_its_successors_transaction_alone(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        slot = plan.used_slots[0]
        wake, ended = threading.Event(), threading.Event()

        def first() -> None:
            with suppress(Superseded), lab.runs() as others:
                copy_held(others, plan, slot, Hooks(before={"append_receipts": pause}))
            ended.set()

        def pause() -> None:
            begun.set()
            assert wake.wait(2 * ANSWER_S)

        begun = threading.Event()
        threading.Thread(target=first, daemon=True).start()
        assert begun.wait(2 * ANSWER_S)

        def let_the_first_go_on() -> None:
            wake.set()
            assert ended.wait(2 * ANSWER_S)

        done = copy_held(runs, plan, slot, Hooks(before={"append_receipts": let_the_first_go_on}))
        assert done.retries == 0
        assert lab.copy(runs, plan).state is RunState.SUCCESS
    assert lab.assert_equal() == 4_000


def test_a_writer_that_leaves_does_not_end_its_successors_transaction(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        options = runs.slot_task(plan, 0, runs.begin(plan, local_origin())).target
    loop = event_loop()
    cluster = Cluster(loop, "target", manager_options(options))
    place = plan.slices[0].target

    async def work() -> None:
        await cluster.open()
        await cluster.refresh([place.topic])
        old, new = (Writer(cluster, f"{lab.alias}-leaving", 60_000) for _ in range(2))
        await old.initialise()
        await new.initialise()
        ledger = LedgerTopic(cluster, lab.alias)
        await ledger.find()
        await ledger.append_in(new, [Record(key=b'["note"]', value=b"{}")])
        await old.leave()
        await new.commit()  # Fenced when the one that left has ended it
        await ledger.append_in(new, [Record(key=b'["note"]', value=b"{}")])
        await new.leave()
        state = await transaction_state(cluster, f"{lab.alias}-leaving")
        assert "Ongoing" not in state, state

    try:
        loop.run(work)
    finally:
        cluster.close()
        loop.close()


def test_an_attempt_that_is_called_off_stops_wherever_it_lives(lab: Lab) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        attempt = runs.begin(plan, local_origin())
        hooks = Hooks(before={"commit": lambda: called_off(lab, plan, attempt)})
        with pytest.raises(Superseded) as caught:
            copy_held(runs, plan, plan.used_slots[0], hooks, attempt)
        assert data_of(caught.value)[0] == "superseded.ended"
        assert not whole_ledger(runs).open
        newer = runs.begin(plan, local_origin())
        assert not runs.end_attempt(plan, attempt), "an attempt that another one follows must leave the slots alone"
        assert runs.still_owns_lane(plan, newer)
        assert lab.copy(runs, plan).state is RunState.SUCCESS
    assert lab.assert_equal() == 4_000


def called_off(lab: Lab, plan: Plan, attempt: Attempt) -> None:
    """What a driver does when it is told to end."""
    with lab.runs() as runs:
        assert runs.end_attempt(plan, attempt)


def test_two_runs_of_one_lane_started_at_the_same_time(lab: Lab, tmp_path: Path) -> None:
    small_chunks = replace(lab, settings={**lab.settings, "ferry.chunk.bytes": "30000"})
    config = small_chunks.write(tmp_path)
    begun = {run: start("run", "--id", run, "--json", config=config) for run in ("one", "other")}
    try:
        ended = {run: finished(process, seconds=120) for run, process in begun.items()}
    finally:
        for process in begun.values():
            process.kill()  # nothing when it has ended
    with lab.runs() as runs:
        order = [opened.record.run for opened in whole_ledger(runs).runs]
    newest = order[-1]
    # A driver that the other one fences late opens its run again, so a run may have two records.
    assert (set(order), ended[newest].code) == ({"one", "other"}, 0), ended
    (older,) = (answer for run, answer in ended.items() if run != newest)
    if older.code == 2:  # it was fenced before its plan was written
        assert older.json("error")["error"]["kind"] == "superseded", older
        assert newest in older.err
    else:  # fenced while it copied, or not at all
        body = older.json("run")
        assert older.code == (0 if body["superseded_by"] is None else 1), older
        assert body["superseded_by"] in (None, newest), older
        if body["superseded_by"] is None and body["state"] != "success":  # the newer one has copied the rest by now
            assert {row["kind"] for row in body["refusals"]} == {"unfinished"}, older

    # As they lie, for a key that was written twice shows only its last record in a view of the ledger.
    rows = read_topic(lab.target.bootstrap, ledger_topic(lab.alias))[0]
    bodies = [json.loads(value) for _, key, value, _, _ in rows if key and value and key.startswith(b'["receipt",')]
    won = Counter((body["partition"], body["start"]) for body in bodies)
    assert set(won.values()) == {1}, "two runs won the same offsets"
    claimed = [
        (row["partition"], row["start"], run)
        for run, answer in ended.items()
        if answer.code != 2
        for row in answer.json("run")["receipts"]
    ]
    assert set(claimed) <= {(body["partition"], body["start"], body["run"]) for body in bodies}
    assert lab.assert_equal() == 4_000


def test_a_target_topic_created_again_mid_run_is_refused_until_somebody_decides(lab: Lab) -> None:
    """The chunk under way is committed, into the topic that is gone: its receipts keep the new one from a gap."""
    source, target = lab.topics[0], lab.target_topic(lab.topics[0])

    def recreate() -> None:
        delete_topic(lab.target, target)
        create_topic(lab.target, target, 4)

    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        slot = plan.used_slots[0]
        mine = {piece.source.partition for piece in plan.of_slot(slot)}
        result = copy_held(runs, plan, slot, Hooks(before={"append_receipts": recreate}))
    assert {(place.partition, refusal.kind) for place, refusal in result.refusals.items()} == {
        (number, RefusalKind.TARGET_CHANGED) for number in mine
    }
    for refusal in result.refusals.values():
        assert refusal.code == "target.recreated.since-plan"
        assert dict(refusal.facts) == {"target": target, "cluster": f"t{lab.alias}", "run": "one"}
    copied = {receipt.source.partition: receipt.end for receipt in lab.receipts()}
    assert copied.keys() <= mine

    report = lab.micro_run()
    assert report.state is RunState.PARTIAL
    assert {(refusal.partition, refusal.kind) for refusal in report.refusals} == {
        (number, RefusalKind.TARGET_CHANGED) for number in copied
    }
    for refusal in report.refusals:
        assert (refusal.code, dict(refusal.facts)["target"]) == ("target.recreated", target)
    rows = read_topic(lab.target.bootstrap, target)
    for number, written in read_topic(lab.source.bootstrap, source).items():
        wanted = [] if number in copied else [row[1:] for row in written]
        assert [row[1:] for row in rows[number]] == wanted, f"partition {number}"


def test_a_source_topic_deleted_mid_run_is_refused_and_what_was_copied_stays(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 4)
    # Of each partition more than a task holds.
    send(producer(source_cluster, batch_num_messages=50), topic, numbered(4_000, partitions=4, size=1_500))
    there = read_topic(source_cluster.bootstrap, topic)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.chunk.bytes": "300000", "ferry.task.memory.bytes": "1048576"},
    )
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        first, second = plan.used_slots
        attempt = runs.begin(plan, local_origin())
        results = {
            slot: copy_held(runs, plan, slot, hooks, attempt)
            for slot, hooks in ((first, Hooks(after={"commit": lambda: remove(lab, topic)})), (second, Hooks()))
        }
        runs.record_outcome(plan, attempt, [end_of(slot, result) for slot, result in results.items()])
        report = runs.report("one")
    copied = sum(receipt.records for receipt in results[first].receipts)
    assert 0 < copied < 2_000
    assert not results[second].receipts
    assert report.state is RunState.PARTIAL
    assert {(refusal.partition, refusal.kind, refusal.code, refusal.facts) for refusal in report.refusals} == {
        (number, RefusalKind.TOPIC_GONE, "source.gone.since-plan", (("cluster", lab.alias),)) for number in range(4)
    }

    later = lab.micro_run()
    assert (later.state, later.records) == (RunState.FAILED, 0)
    assert [(refusal.topic, refusal.partition, refusal.kind) for refusal in later.refusals] == [
        (topic, None, RefusalKind.TOPIC_GONE)
    ]
    rows = read_topic(target_cluster.bootstrap, lab.target_topic(topic))
    assert sum(map(len, rows.values())) == copied
    for number, written in rows.items():
        assert [row[1:] for row in written] == [row[1:] for row in there[number]][: len(written)]


def remove(lab: Lab, topic: str) -> None:
    """Delete a source topic, and wait until its broker serves it no more."""
    delete_topic(lab.source, topic)
    logs = lab.source.brokers[0].data
    until = time.monotonic() + ANSWER_S
    while any((logs / f"{topic}-{number}").exists() for number in range(4)):
        assert time.monotonic() < until, "the broker does not delete the topic"
        time.sleep(0.02)
