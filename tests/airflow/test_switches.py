"""Switches by a real Airflow: a person approves, a task that was killed goes on, and clients at work lose nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.features.evidence.acts.folder import read_folder
from ferry.features.evidence.acts.store import LocalStore
from ferry.model.evidence import EvidenceReport
from ferry.model.switch import Step, SwitchState, Verb
from ferry.run.micro_run import MicroRuns, local_origin
from tests.airflow.conftest import MOVED, RESUMED, Flows
from tests.airflow.held import orders
from tests.airflow.switched import WAIT_SECONDS, Switched
from tests.harness import committed_offsets, create_topic, numbered, producer, send, wait_until
from tests.kafka.run.movers import Movers
from tests.kafka.run.switching import PARTITIONS, Clients, begin_group, member
from tests.tiers import ANSWER_S

THERE_AND_BACK, ONCE = MOVED
PLANNED = {"quiet_seconds": 3, "reason": "the data centre is moved"}


@pytest.mark.timeout(1_800)
def test_clients_at_work_are_switched_over_while_a_task_is_killed(flows: Flows) -> None:
    switched, movers = begun(flows, ONCE)
    with movers.at_work():
        read_on(movers)
        switch_over(switched, movers)
        end(movers)
    assert not movers.failures, movers.failures[:3]
    assert not movers.doubled
    assert [one.switch.verb for one in switched.known()] == [Verb.SWITCHOVER]
    assert len(reports(flows, ONCE)) == 1


@pytest.mark.timeout(1_800)
def test_clients_at_work_fail_over_and_back_and_there_again_while_each_switch_is_killed(flows: Flows) -> None:
    """Every acknowledged record is read once, or named: in the file of stranded ones, or behind the last checkpoint."""
    switched, movers = begun(flows, THERE_AND_BACK)
    with movers.at_work():
        read_on(movers)
        switched.copy()
        read_on(movers)
        lost = fail_over(switched, movers)
        named, stood = fail_back(switched, movers, moves(flows, THERE_AND_BACK) / "stranded.jsonl")
        assert len(named) >= lost.fact(Step.LOSS, "records"), "what the failover counted is in the file"
        switch_over(switched, movers)
        end(movers, named)
    there, back, again = reports(flows, THERE_AND_BACK)
    assert [(one.kind.value, one.id) for one in (there, back, again)] == [
        (state.switch.verb.value, state.switch.id) for state in switched.known()
    ], "each switch has left its report, once, however often its tasks died"
    assert (there.samples, back.samples[-1].lag_records) == ((), 0), "a failover copies nothing, and Spark drained"
    for value in movers.doubled:
        here = [one for one in movers.readings(value) if (one.cluster, one.topic) == (flows.source.name, movers.topic)]
        assert here, f"planned ways double nothing: {movers.readings(value)}"
        assert here[0].offset in behind_checkpoint(lost, movers, here[0].partition) or (
            # Read while the broker died, which could not take the offset any more.
            value in named and here[0].offset >= stood[here[0].partition]
        ), movers.readings(value)


def begun(flows: Flows, alias: str) -> tuple[Switched, Movers]:
    """The switches of a flow, and its clients, which are to be at its source."""
    directory = flows.directories[alias]
    movers = Movers(directory=directory, topic=orders(alias), group=f"{alias}-billing", partitions=PARTITIONS)
    create_topic(flows.source, movers.topic, PARTITIONS)
    begin_group(flows.source, movers.group, movers.topic)
    directory.move(alias)
    return Switched(flows=flows, alias=alias), movers


def end(movers: Movers, named: Collection[bytes] = frozenset()) -> None:
    """The producer stops; each record that was acknowledged is read, or named in the file."""
    movers.over.set()
    wait_until(lambda: bool(movers.failures) or movers.unread <= set(named), "each record, read or named", WAIT_SECONDS)
    assert not movers.failures, movers.failures[:3]


def moves(flows: Flows, alias: str) -> Path:
    """The folder of the reports of a flow's switches."""
    return flows.home.path.parent / f"moves-{alias}"


def reports(flows: Flows, alias: str) -> list[EvidenceReport]:
    """What the switches of a flow have left there."""
    return [one.report.evidence for one in read_folder(LocalStore(moves(flows, alias))) if one.report]


def fail_over(switched: Switched, movers: Movers) -> SwitchState:
    """The source dies, and with it a run; so does the task while it sends the clients."""
    flows, directory = switched.flows, movers.directory
    with MicroRuns(switched.settings.flow(switched.flow), patience_s=ANSWER_S) as runs:
        plan = runs.open_new("died-with-the-source", local_origin())
    planned = {piece.source.partition: piece.end - piece.start for piece in plan.slices}
    assert len(planned) == PARTITIONS
    flows.source.brokers[0].kill()

    run = switched.asked(Verb.FAILOVER, {"reason": "the data centre burns", "interrupt": True})
    body = switched.body(Verb.FAILOVER, run)
    for words in (
        "the data centre burns",
        f"clients go from {switched.alias} to t{switched.alias}",
        f"{switched.alias} does not answer",
        f"count what {switched.alias} had and t{switched.alias} has not",
    ):
        assert words in body
    before_ms = time.time_ns() // 1_000_000
    with flows.directories[switched.alias].held():
        switched.answer(Verb.FAILOVER, run, "Approve")
        switched.kill(Verb.FAILOVER, run, Step.REDIRECT, lambda _: bool(directory.calls))
    switched.clear(Verb.FAILOVER, run, Step.REDIRECT)
    lost = switched.finished(Verb.FAILOVER, run)
    assert [call["switch"] for call in directory.calls] == [lost.switch.id] * 2, "called again, by the same id"
    dag = switched.dag(Verb.FAILOVER)
    assert flows.rest.returned(dag, run, "report")["report"]["number"] == 1
    assert flows.rest.opened(flows.rest.links(dag, run, "report")["Report"])
    assert before_ms < lost.switch.approved_ms < lost.done[Step.READINESS].begun_ms
    assert "approved by admin" in flows.rest.log(switched.dag(Verb.FAILOVER), run, "report", 2)
    assert lost.fact(Step.STOP, "source_answers") is False
    assert {row["partition"]: row["records"] for row in lost.rows(Step.LOSS)} == planned
    read_on(movers)
    return lost


def fail_back(switched: Switched, movers: Movers, file: Path) -> tuple[set[bytes], dict[int, int]]:
    """The old cluster is there again; the task that drains dies while Spark is at work.

    What is named in the file, and where the group stood on that cluster, by partition.
    """
    flows = switched.flows
    flows.source.start()
    wait_until(lambda: not has_members(flows.source, movers.group), "an end of the group's members", WAIT_SECONDS)
    stood = committed_offsets(flows.source, movers.group, movers.topic, PARTITIONS)
    run = switched.asked(Verb.FAILBACK, {**PLANNED, "output": str(file)})
    switched.answer(Verb.FAILBACK, run, "Approve")
    switched.at_work(Verb.FAILBACK, run, Step.QUIET)
    movers.directory.halt()
    switched.kill(Verb.FAILBACK, run, Step.DRAIN, lambda task: bool(task.children()))
    switched.clear(Verb.FAILBACK, run, Step.DRAIN)
    back = switched.finished(Verb.FAILBACK, run)
    assert back.fact(Step.DRAIN, "records") > 0
    assert movers.directory.calls[-1]["to"] == switched.alias
    named = [str(json.loads(line)["value"]).encode() for line in file.read_text().splitlines()]
    assert back.fact(Step.STRANDED, "records") == len(named)
    read_on(movers)
    return set(named), stood


def switch_over(switched: Switched, movers: Movers) -> None:
    """As planned; the task that waits for the clients to stop dies while they are still at work."""
    switched.copy()
    run = switched.asked(Verb.SWITCHOVER, PLANNED)
    body = switched.body(Verb.SWITCHOVER, run)
    for words in (str(PLANNED["reason"]), f"run {switched.flow} until nothing is left to copy"):
        assert words in body
    switched.answer(Verb.SWITCHOVER, run, "Approve")
    killed = switched.kill(Verb.SWITCHOVER, run, Step.QUIET)
    switched.clear(Verb.SWITCHOVER, run, Step.QUIET)
    switched.at_work(Verb.SWITCHOVER, run, Step.QUIET, but=killed)
    movers.directory.halt()
    done = switched.finished(Verb.SWITCHOVER, run)
    assert movers.directory.calls[-1]["switch"] == done.switch.id
    read_on(movers)


def read_on(movers: Movers) -> None:
    """The group is given a hundred records more."""
    wanted = len(movers.read) + 100
    wait_until(
        lambda: bool(movers.failures) or len(movers.read) >= wanted, "more records that the clients read", WAIT_SECONDS
    )
    assert not movers.failures, movers.failures[:3]


def behind_checkpoint(lost: SwitchState, movers: Movers, partition: int) -> range:
    """Source offsets that the group may have read behind its last checkpoint, by the evidence, and has in the copy."""
    stood = next(row for row in lost.rows(Step.FREEZE) if row.get("group") == movers.group)["offsets"]
    begin = next(offset for topic, number, offset, _ in stood if (topic, number) == (movers.topic, partition))
    end = next(row["copied_end"] for row in lost.rows(Step.STOP) if row["partition"] == partition)
    return range(begin, end)


def has_members(cluster: RunningCluster, group: str) -> bool:
    """Whether the coordinator counts members, dead ones included, or does not tell yet."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        return bool(admin.describe_consumer_groups([group])[group].result(ANSWER_S).members)
    except (KafkaException, TimeoutError):
        return True


@pytest.mark.timeout(1_200)
def test_whoever_refuses_or_does_not_answer_has_changed_nothing(flows: Flows, topic: str) -> None:
    rest, switched = flows.rest, refraining(flows, topic)
    name = switched.dag(Verb.SWITCHOVER)

    run = switched.asked(Verb.SWITCHOVER, PLANNED)
    switched.answer(Verb.SWITCHOVER, run, "Reject")
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "success"
    states = rest.states(name, run)
    assert (states.pop("preview"), states.pop("approve")) == ("success", "success")
    assert set(states.values()) == {"skipped"}

    run = switched.asked(Verb.SWITCHOVER, {**PLANNED, "approval_timeout_seconds": 1})
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "failed"
    assert "no approval in time" in rest.log(name, run, "approve", 1)
    assert not switched.known()


@pytest.mark.timeout(1_200)
def test_a_dry_run_of_a_switch_shows_its_steps_and_asks_nobody(flows: Flows, topic: str) -> None:
    rest, switched = flows.rest, refraining(flows, topic)
    name = switched.dag(Verb.SWITCHOVER)
    run = rest.trigger(name, {**PLANNED, "dry_run": True})
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "success"
    assert rest.states(name, run)["approve"] == "skipped"
    assert f"run {switched.flow} until nothing is left" in rest.log(name, run, "preview")
    assert not switched.known()


def refraining(flows: Flows, topic: str) -> Switched:
    """The switches of a flow that is never switched, and has copied a few records of a topic more."""
    create_topic(flows.source, f"refrain-{topic}")
    send(producer(flows.source), f"refrain-{topic}", numbered(5))
    flows.lab("refrain").micro_run()
    return Switched(flows=flows, alias="refrain")


@pytest.mark.timeout(1_200)
def test_a_switch_whose_task_is_killed_continues_and_its_group_reads_each_record_once(flows: Flows) -> None:
    """The task that waits for clients to stop dies while one is a member; nothing is left that Spark has to copy."""
    switched, verb = Switched(flows=flows, alias=RESUMED), Verb.SWITCHOVER
    clients = Clients(topic=orders(RESUMED), group=f"{RESUMED}-billing")
    create_topic(flows.source, clients.topic, PARTITIONS)
    begin_group(flows.source, clients.group, clients.topic)
    clients.produce(flows.source, 20)
    clients.consume(flows.source, [clients.topic], 7)
    switched.copy()
    run = switched.asked(verb, {**PLANNED, "quiet_seconds": 1})
    with member(flows.source, clients.group, [clients.topic]) as reader:
        wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member", WAIT_SECONDS)
        switched.answer(verb, run, "Approve")
        switched.kill(verb, run, Step.QUIET)
    killed_ms = time.time_ns() // 1_000_000
    switched.clear(verb, run, Step.QUIET)
    done = switched.finished(verb, run)
    assert done.done[Step.FREEZE].begun_ms < killed_ms < done.done[Step.QUIET].begun_ms, "it continues where it was"
    assert (done.fact(Step.DRAIN, "records"), [one.switch.id for one in switched.known()]) == (0, [done.switch.id])
    clients.produce(flows.target, 5)
    clients.consume(flows.target, [clients.topic, f"{RESUMED}.{clients.topic}"])
    assert sorted(clients.read) == sorted(clients.produced), "each record is read once"
