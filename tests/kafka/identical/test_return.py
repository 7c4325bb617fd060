"""The way back with identical offsets, on real brokers: clients move and return, at one numbering."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.model.switch import Step, SwitchOutcome, Verb, next_step
from tests.harness import (
    Message,
    committed_offsets,
    create_topic,
    delete_topic,
    read_topic,
    send,
    wait_until,
    watermark,
)
from tests.kafka.identical.test_transactions import transactional
from tests.kafka.run.switching import (
    IDENTITY,
    OPTIONS,
    PARTITIONS,
    Clients,
    Pair,
    begin_group,
    rest,
    switch_killed_at_every_change,
)
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S


def both_ways(source: RunningCluster, target: RunningCluster, topic: str, **more: str) -> tuple[Pair, Clients]:
    """Flows with identical offsets in both directions, whose topics keep their names; the topic, and a group in it."""
    clients = Clients(topic=topic, group=f"group-{topic}")
    own = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true", "replication.policy.class": IDENTITY}
    pair = Pair(here=source, there=target, topic=topic, group=clients.group, more={**own, **more})
    create_topic(source, topic, PARTITIONS)
    begin_group(source, clients.group, topic)
    rest(pair)
    return pair, clients


@pytest.mark.timeout(300)
def test_clients_move_and_return_though_processes_die_at_each_change(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    pair, clients = both_ways(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [topic], 7)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)

    moved(pair, clients, Verb.SWITCHOVER, "out-1")
    pair.run(pair.back)
    clients.produce(target_cluster, 6)
    moved(pair, clients, Verb.FAILBACK, "back-1", dies=True)
    pair.run(pair.flow)
    assert same(pair)
    assert sorted(clients.read) == sorted(clients.produced)


@pytest.mark.timeout(240)
def test_clients_move_and_return_twice_and_a_group_is_among_what_they_wrote_there(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    pair, clients = both_ways(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)
    moved(pair, clients, Verb.SWITCHOVER, "out-1", read=35)
    pair.run(pair.back)
    moved(pair, clients, Verb.FAILBACK, "back-1", read=3)
    pair.run(pair.flow)
    at = committed_offsets(source_cluster, clients.group, topic, PARTITIONS)
    assert 30 < sum(at.values()) < 42
    assert committed_offsets(target_cluster, clients.group, topic, PARTITIONS) == at

    file = tmp_path / "pair.properties"
    file.write_text(pair.text)
    for flow in (pair.flow, pair.back):
        for number in range(PARTITIONS):
            found = ferry("translate", flow, topic, str(number), "18", "--json", config=file).json("translate")
            assert found["target_offset"] == 18, (flow, found)
        answer = ferry("verify", flow, "--json", config=file)
        assert answer.code == 0, answer.out + answer.err
    moved(pair, clients, Verb.SWITCHOVER, "out-2")
    moved(pair, clients, Verb.FAILBACK, "back-2")
    pair.run(pair.flow)
    assert same(pair)
    assert sorted(clients.read) == sorted(clients.produced)


def moved(
    pair: Pair, clients: Clients, verb: Verb, switch: str, *, read: int | None = None, dies: bool = False
) -> None:
    """Clients move, and continue at the other cluster: producers with 12 records, and the group at its numbers.

    The group reads so many records then; None: all. `dies`: processes die at each change of the switch.
    """
    old, new = (pair.here, pair.there) if verb is Verb.SWITCHOVER else (pair.there, pair.here)
    before = committed_offsets(old, clients.group, clients.topic, PARTITIONS)
    moved_by(pair, verb, switch, dies=dies)
    assert committed_offsets(new, clients.group, clients.topic, PARTITIONS) == before
    clients.produce(new, 12)
    clients.consume(new, [clients.topic], read)


def moved_by(pair: Pair, verb: Verb, switch: str, *, dies: bool = False) -> None:
    """A switch is finished, and has started the flow back. Both sides are the same."""
    if dies:
        state = switch_killed_at_every_change(pair, verb, switch, OPTIONS)
    else:
        with pair.switcher(verb) as switcher:
            switcher.open(switch, OPTIONS, "bob")
            state = switcher.run(switch)
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    assert state.fact(Step.REVERSE, "started")
    assert same(pair)


def same(pair: Pair) -> bool:
    """Whether both clusters have the same records at the same offsets."""
    return read_topic(pair.here.bootstrap, pair.topic) == read_topic(pair.there.bootstrap, pair.topic)


@pytest.mark.timeout(300)
def test_after_a_failover_with_loss_topics_are_made_again_and_clients_return(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """The old cluster has records that the new one lacks, so the flow back is not started, and a failback stops.

    Its topic is created again, and the failback copies all to it. Then clients move and return once more.
    """
    pair, clients = both_ways(source_cluster, target_cluster, topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [topic], 7)
    pair.run(pair.flow)
    lost = clients.produce(source_cluster, 10)
    with pair.switcher(Verb.FAILOVER) as switcher:
        switcher.open("lost-1", OPTIONS, "bob")
        state = switcher.run("lost-1")
    assert (state.fact(Step.LOSS, "records"), state.fact(Step.REVERSE, "started")) == (len(lost), False)
    clients.produce(target_cluster, 12)

    with pair.switcher(Verb.FAILBACK) as switcher:
        switcher.open("back-1", replace(OPTIONS, export=str(tmp_path / "stranded.jsonl")), "bob")
        with pytest.raises(Refused) as caught:
            switcher.run("back-1")
        assert caught.value.args[0].code == "identical.return.ends"
        assert next_step(switcher.state("back-1")) is Step.RETURN
        assert state.fact(Step.REVERSE, "started") is False

    delete_topic(source_cluster, topic)
    create_topic(source_cluster, topic, PARTITIONS)
    with pair.switcher(Verb.FAILBACK) as switcher:
        state = switcher.run("back-1")
    assert state.fact(Step.REVERSE, "started")
    assert same(pair)
    clients.consume(source_cluster, [topic])
    clients.produce(source_cluster, 8)
    pair.run(pair.flow)
    assert same(pair)
    assert committed_offsets(target_cluster, clients.group, topic, PARTITIONS) == committed_offsets(
        source_cluster, clients.group, topic, PARTITIONS
    )
    moved(pair, clients, Verb.SWITCHOVER, "out-2")
    moved(pair, clients, Verb.FAILBACK, "back-2")
    assert sorted(clients.read) == sorted(one for one in clients.produced if one not in lost)


@pytest.mark.timeout(300)
def test_what_clients_write_in_transactions_has_one_numbering_there_and_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    """The first transaction after each move is aborted, so the lane begins with a marker. One run copies all."""
    pair, clients = both_ways(source_cluster, target_cluster, topic)
    file = tmp_path / "pair.properties"
    file.write_text(pair.text)
    here, there = (transactional(cluster, f"writer-{topic}") for cluster in (source_cluster, target_cluster))
    transact(source_cluster, here, clients, "cac")
    run_once(pair, pair.flow, file)
    moved_by(pair, Verb.SWITCHOVER, "out-1")
    transact(target_cluster, there, clients, "acac")
    clients.consume(target_cluster, [topic], 9)
    run_once(pair, pair.back, file)
    moved_by(pair, Verb.FAILBACK, "back-1")
    transact(source_cluster, here, clients, "aca")
    run_once(pair, pair.flow, file)
    rows = [row for some in read_topic(target_cluster.bootstrap, topic).values() for row in some]
    assert sorted(row[2] or b"" for row in rows) == sorted(clients.produced)
    clients.consume(source_cluster, [topic])
    assert sorted(clients.read) == sorted(clients.produced)
    for flow in (pair.flow, pair.back):
        for how in ((), ("--without-ledger",)):
            answer = ferry("verify", flow, *how, "--json", config=file)
            found = answer.json("verify")
            assert (answer.code, found["differences"], found["records"]) == (0, [], len(rows)), answer.out


def transact(cluster: RunningCluster, client: Producer, clients: Clients, ends: str) -> None:
    """Clients write a transaction for each letter: `c` is committed, `a` is aborted. Each has two records a partition.

    Those of committed transactions are produced.
    """
    before = [watermark(cluster, clients.topic, number) for number in range(PARTITIONS)]
    for number, end in enumerate(ends):
        values = [f"{len(clients.produced)}-{number}-{at}".encode() for at in range(2 * PARTITIONS)]
        client.begin_transaction()
        messages = [Message(value=value, partition=at % PARTITIONS) for at, value in enumerate(values)]
        send(client, clients.topic, messages)
        if end == "c":
            client.commit_transaction(ANSWER_S)
            clients.produced += values
        else:
            client.abort_transaction(ANSWER_S)
    after = [offset + 3 * len(ends) for offset in before]
    wait_until(
        lambda: [watermark(cluster, clients.topic, number) for number in range(PARTITIONS)] == after,
        "the markers of the transactions",
        ANSWER_S,
    )


def run_once(pair: Pair, flow: str, file: Path) -> None:
    """One run copies all."""
    answer = ferry("run", flow, "--json", config=file)
    assert (answer.code, answer.json("run")["refusals"]) == (0, []), answer.err
    assert same(pair)
    for number in range(PARTITIONS):
        assert watermark(pair.here, pair.topic, number) == watermark(pair.there, pair.topic, number)
