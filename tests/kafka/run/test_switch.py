"""Switches on real brokers: producers and consumers move, come back, and each record is read once or named."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.errors import BadInput, Refused, Superseded, Unreachable
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.quiet import moved_since
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.acts.switcher import Switcher
from ferry.features.switch.rules.readiness import Rpo
from ferry.features.switch.settings import SwitchHook
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import gaps, pauses
from ferry.ledger.receipts import receipts
from ferry.model import Fact, Gap, Pause, Receipt
from ferry.model.switch import STEPS, Step, SwitchOutcome, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess
from ferry.run.ledger.pausing import write_pause
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Feeder, Message, create_topic, producer, send, wait_until
from tests.kafka.run.switching import (
    IDENTITY,
    OPTIONS,
    PARTITIONS,
    Clients,
    Pair,
    begin_group,
    member,
    refuses,
    rest,
    switch_killed_at_every_change,
)
from tests.said import data_of
from tests.tiers import ANSWER_S, PATIENCE


@pytest.mark.timeout(240)
def test_a_switchover_and_the_way_back_lose_and_double_nothing(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    clients: Clients,
    tmp_path: Path,
) -> None:
    clients = replace(clients, topic=f"shop.{clients.topic}")  # a dot in a name of its own makes it nobody's copy
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    pair = replace(pair, more={f"{pair.back}.ferry.start": "latest"})  # but nothing that comes after the switchover
    here, there = pair.aliases
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 7)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)

    state = switch_killed_at_every_change(pair, Verb.SWITCHOVER, "over-1", OPTIONS)
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED
    assert state.switch.approved_by == "bob"
    assert str(state.fact(Step.SMOKE, "written_by")).startswith("librdkafka "), state.fact(Step.SMOKE, "written_why")
    assert str(state.fact(Step.SMOKE, "read_by")).startswith("librdkafka "), state.fact(Step.SMOKE, "read_why")
    (frozen,) = [row for row in state.rows(Step.FREEZE) if "group" in row]
    assert (frozen["group"], frozen["known"], frozen["why"]) == (clients.group, "source", None)
    assert sum(lag for _, _, _, lag in frozen["offsets"]) == 23, "of 30 it had read 7"
    assert sum(offset for _, _, offset, _ in frozen["translated"]) == 7
    assert {(topic, how) for topic, _, _, how in frozen["translated"]} == {(f"{here}.{clients.topic}", "exact")}

    over_there = [f"{here}.{clients.topic}", clients.topic]
    clients.produce(target_cluster, 12)
    clients.consume(target_cluster, over_there, 30)

    options = replace(OPTIONS, export=str(tmp_path / "stranded.jsonl"))
    state = switch_killed_at_every_change(pair, Verb.FAILBACK, "back-1", options)
    assert state.fact(Step.STRANDED, "records") == 0
    assert not (tmp_path / "stranded.jsonl").exists()

    back_here = [clients.topic, f"{there}.{clients.topic}"]
    clients.produce(source_cluster, 5)
    clients.consume(source_cluster, back_here)
    assert sorted(clients.read) == sorted(clients.produced)


def only_the_delta_came_back(pair: Pair, state: SwitchState, count: int, *, keeps: bool) -> None:
    """A failback has copied what came since the cut-over, and what it left behind does not go round."""
    copied, _ = ledger_of(pair, pair.back)
    assert sum(receipt.records for receipt in copied) == count
    _, passed = ledger_of(pair, pair.flow)
    if keeps:
        cut = {row["partition"]: row["start"] for row in state.rows(Step.STRANDED)}
        stranded = {gap.source.partition: gap.start for gap in passed if gap.stranded}
        assert stranded == cut, "before the flow copies there again"
        assert all(gap.end > gap.start for gap in passed)
        return
    here, there = pair.aliases
    topics = AdminClient({"bootstrap.servers": pair.here.bootstrap}).list_topics(timeout=ANSWER_S).topics
    assert f"{there}.{pair.topic}" in topics
    assert f"{there}.{here}.{pair.topic}" not in topics
    assert not passed


def ledger_of(pair: Pair, flow: str) -> tuple[list[Receipt], list[Gap]]:
    """What a flow has copied, and what it has passed."""
    config = pair.settings.flow(flow)
    with LedgerAccess(config, patience_s=ANSWER_S) as ledger:
        view = ledger.view()
    return list(receipts(view)), gaps(view, config.lane)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_a_failover_counts_what_is_lost_and_a_failback_brings_it_to_light(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    clients: Clients,
    tmp_path: Path,
    impatient: None,
    policy: str,
) -> None:
    pair = Pair(
        here=source_cluster,
        there=target_cluster,
        topic=clients.topic,
        group=clients.group,
        more={"replication.policy.class": IDENTITY} if policy == "Identity" else {},
    )
    here, there = pair.aliases
    keeps = policy == "Identity"
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    if keeps:
        rest(pair)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 7)
    pair.run(pair.flow)
    stranded = clients.produce(source_cluster, 6)

    state = switch_killed_at_every_change(pair.lost, Verb.FAILOVER, "lost-1", OPTIONS)
    assert state.fact(Step.LOSS, "unsure") == PARTITIONS, "nobody can tell what came since the last run"
    assert [row["known"] for row in state.rows(Step.FREEZE) if "group" in row] == ["checkpoint"]
    assert state.fact(Step.LOSS, "seconds") > 0
    assert state.fact(Step.REVERSE, "started") is False

    over_there = [clients.topic] if keeps else [f"{here}.{clients.topic}", clients.topic]
    clients.produce(target_cluster, 12)
    clients.consume(target_cluster, over_there, 17)

    file = tmp_path / "stranded.jsonl"
    options = replace(OPTIONS, export=str(file))
    state = switch_killed_at_every_change(pair, Verb.FAILBACK, "back-1", options)
    named = [str(line["value"]).encode() for line in map(json.loads, file.read_text().splitlines())]
    assert sorted(named) == sorted(stranded)
    assert state.fact(Step.STRANDED, "records") == len(stranded)
    if keeps:
        frozen = [row for row in state.rows(Step.FREEZE) if "group" not in row]
        left = sum(row["source_end"] - row["copied_end"] for row in frozen)
        assert left <= 12 + PARTITIONS, "what is left to copy is what came since the cut-over, not what was there"
    only_the_delta_came_back(pair, state, 12, keeps=keeps)

    back_here = [clients.topic] if keeps else [clients.topic, f"{there}.{clients.topic}"]
    clients.produce(source_cluster, 5)
    clients.consume(source_cluster, back_here)
    assert len(clients.read) == len(set(clients.read)), "nothing is read twice"
    assert set(clients.produced) - set(clients.read) <= set(named), "what is not read is named"

    pair.run(pair.flow)
    clients.produce(source_cluster, 4)
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        switcher.open("over-2", OPTIONS, "bob")
        switcher.run("over-2")
    clients.produce(target_cluster, 3)
    clients.consume(target_cluster, over_there)
    assert len(clients.read) == len(set(clients.read)), "nothing is read twice"
    assert set(clients.produced) - set(clients.read) <= set(named), "what is not read is named"


@pytest.mark.timeout(240)
def test_what_producers_wrote_on_the_new_cluster_before_the_failover_comes_back(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path, impatient: None
) -> None:
    more = {"replication.policy.class": IDENTITY}
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group, more=more)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    rest(pair)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, [clients.topic], 7)
    pair.run(pair.flow)
    clients.produce(target_cluster, 10)

    with pair.lost.switcher(Verb.FAILOVER) as switcher:
        switcher.open("late-1", OPTIONS, "bob")
        state = switcher.run("late-1")
    assert state.fact(Step.STOP, "written_by_others") == PARTITIONS
    assert "written to 2 copies" in state.done[Step.STOP].evidence.sentence

    clients.produce(target_cluster, 5)
    clients.consume(target_cluster, [clients.topic], 8)
    left_open = producer(source_cluster, **{"transactional.id": f"t-{clients.topic}"})
    left_open.init_transactions()
    left_open.begin_transaction()
    left_open.produce(clients.topic, b"never committed", partition=0)
    left_open.flush()
    send(producer(source_cluster), clients.topic, [Message(value=b"stranded", partition=0)])
    file = tmp_path / "stranded.jsonl"
    with pair.switcher(Verb.FAILBACK) as switcher:
        switcher.open("back-1", replace(OPTIONS, export=str(file)), "bob")
        with pytest.raises(Refused, match=f"transaction .*{clients.topic}-0, .*-{clients.topic}"):
            switcher.run("back-1")
        left_open.abort_transaction()
        state = switcher.run("back-1")
    assert [json.loads(line)["value"] for line in file.read_text().splitlines()] == ["stranded"]
    assert file.stat().st_mode & 0o777 == 0o600, "keys and values are nobody else's to read"
    assert {(row["partition"], row["records"]) for row in state.rows(Step.STRANDED)} == {(0, 1), (1, 0)}
    clients.consume(source_cluster, [clients.topic])
    read = [value for value in clients.read if value != b"stranded"]
    assert sorted(read) == sorted(clients.produced), "each record is read once, whenever its producer moved"


def test_groups_read_what_producers_wrote_that_moved_before_the_failover(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, impatient: None
) -> None:
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    for cluster in (source_cluster, target_cluster):
        create_topic(cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    long_ago = int(time.time() * 1_000) - 3_600_000
    send(producer(target_cluster), clients.topic, [Message(value=b"of there", partition=0, timestamp=long_ago)] * 3)
    clients.produce(source_cluster, 10)
    pair.run(pair.flow)
    clients.produce(target_cluster, 6)
    with pair.lost.switcher(Verb.FAILOVER) as switcher:
        switcher.open("lost-1", OPTIONS, "bob")
        state = switcher.run("lost-1")
    rows = {row["partition"]: (row["begin"], row["end"]) for row in state.rows(Step.TOPICS)}
    assert rows == {0: (3, 6), 1: (0, 3)}
    assert " 2 partitions before" in state.done[Step.TOPICS].evidence.sentence
    clients.produce(target_cluster, 4)
    clients.consume(target_cluster, [f"{pair.aliases[0]}.{clients.topic}", clients.topic])
    assert sorted(clients.read) == sorted(clients.produced)


def not_quiet(switcher: Switcher, switch: str) -> dict[str, Fact]:
    """What a switch names that waits for clients in vain."""
    with pytest.raises(Refused) as refused:
        switcher.run(switch)
    code, facts = data_of(refused.value)
    assert code == "switch.not-quiet"
    return facts


def test_what_stands_against_a_switch_is_named_and_nothing_is_half_switched(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    here, there = pair.aliases
    copy = f"{here}.{clients.topic}"
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    clients.produce(source_cluster, 10)
    pair.run(pair.flow)

    one_way = replace(pair, more={f"{pair.back}.enabled": "false"})
    with pytest.raises(BadInput, match=f"flow {pair.back}, "):
        one_way.switcher(Verb.FAILBACK)
    for verb in (Verb.SWITCHOVER, Verb.FAILOVER):
        refuses(one_way, verb, "switch.no-reverse", back=pair.back)
    refuses(pair, Verb.FAILBACK, "switch.nothing-to-return", flow=pair.flow)

    with member(target_cluster, clients.group, [copy]) as reader:
        wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member")
        for verb in (Verb.SWITCHOVER, Verb.FAILOVER):
            refuses(pair, verb, "switch.not-ready", match=clients.group, cluster=there, check="groups")
    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:
        clients.produce(source_cluster, 2)
        plan = runs.open_new("killed", local_origin())
        runs.begin(plan, local_origin())
    refuses(pair, Verb.SWITCHOVER, "run.at-work", run="killed", lane="live")
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        with pytest.raises(BadInput) as unapproved:
            switcher.open("s-1", OPTIONS, " ")
        assert data_of(unapproved.value)[0] == "switch.needs-approval"
        assert switcher.states() == {}, "so far nothing was written"

        options = replace(OPTIONS, interrupt=True, quiet_timeout_seconds=1.5)
        switcher.open("s-1", options, "bob")
        with Feeder(source_cluster, clients.topic, partitions=PARTITIONS):
            assert f"{clients.topic}-0" in str(not_quiet(switcher, "s-1")["partitions"])
        with member(source_cluster, clients.group, [clients.topic]) as reader:
            wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member")
            assert not_quiet(switcher, "s-1")["groups"] == clients.group
        state = switcher.abandon("s-1", "not today")
    assert state.end is not None
    assert set(state.done) == {Step.READINESS, Step.FREEZE}
    pair.run(pair.flow)
    topics = AdminClient({"bootstrap.servers": target_cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics
    assert copy in topics
    assert clients.topic not in topics

    corrupt = Pause(topic="", who="eve@desk-9", why="the source is corrupt", since_ms=1)
    flow = pair.settings.flow(pair.flow)
    with LedgerAccess(flow, patience_s=ANSWER_S) as ledger:
        write_pause(ledger, corrupt)
    with pair.switcher(Verb.FAILOVER) as switcher:
        switcher.open("s-2", OPTIONS, "bob")
        for step in (Step.READINESS, Step.FREEZE, Step.STOP):
            state = switcher.step("s-2", step)
        assert state.fact(Step.STOP, "was_paused") == f"by {corrupt.who}: {corrupt.why}"
        switcher.abandon("s-2", "not today")
    with LedgerAccess(flow, patience_s=ANSWER_S) as ledger:
        assert pauses(ledger.view(), wall_ms()) == {"": corrupt}, "somebody else's pause is not the switch's to lift"


@pytest.mark.timeout(180)
def test_a_group_that_had_read_ahead_of_the_copy_goes_on_where_it_stood(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, impatient: None
) -> None:
    """Its last checkpoint led to the end of the copy; more was copied since, and then the source was lost."""
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    clients.produce(source_cluster, 10)
    pair.run(pair.flow)
    clients.produce(source_cluster, 10)
    clients.consume(source_cluster, [clients.topic], 16)
    with MicroRuns(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as runs:
        plan = runs.open_new("late", local_origin())
        checkpoint(runs, plan.run)
        attempt = runs.begin(plan, local_origin())
        runs.record_outcome(plan, attempt, copy_all(runs, plan, attempt))
    with pair.lost.switcher(Verb.FAILOVER) as switcher:
        switcher.open("lost-1", OPTIONS, "bob")
        switcher.run("lost-1")
    clients.consume(target_cluster, [f"{pair.aliases[0]}.{clients.topic}"])
    assert sorted(clients.read) == sorted(clients.produced)


@pytest.mark.timeout(180)
def test_a_forgotten_producer_stops_a_switch_which_is_given_up_and_another_one_goes_through(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    clients.produce(source_cluster, 10)
    clients.consume(source_cluster, [clients.topic], 4)
    pair.run(pair.flow)
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        for name, due, code in [
            ("s-1", Step.DRAIN, "switch.grew.after-quiet"),
            ("s-2", Step.PROMOTE, "switch.grew.after-drain"),
        ]:
            switcher.open(name, OPTIONS, "bob")
            for step in STEPS[Verb.SWITCHOVER]:
                if step is due:
                    break
                switcher.step(name, step)
            clients.produce(source_cluster, 2)
            for _ in range(2):
                with pytest.raises(Refused) as refused:
                    switcher.step(name, due)
                found, facts = data_of(refused.value)
                assert (found, facts["named"], facts["switch"]) == (code, pair.flow, name)
            if due is Step.DRAIN:
                with pytest.raises(Superseded) as superseded:
                    pair.run(pair.flow)
                found, facts = data_of(superseded.value)
                assert (found, facts["verb"], facts["switch"]) == ("superseded.draining", "switchover", name)
            assert switcher.abandon(name, "a producer was forgotten").end is not None
            clients.produce(source_cluster, 2)
            pair.run(pair.flow)
        switcher.open("s-3", OPTIONS, "bob")
        assert switcher.run("s-3").end is not None
    clients.consume(target_cluster, [f"{pair.aliases[0]}.{clients.topic}", clients.topic])
    assert sorted(clients.read) == sorted(clients.produced)


@pytest.mark.timeout(180)
def test_a_consumer_that_comes_back_or_has_not_decided_stops_a_switch(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    begin_group(source_cluster, clients.group, clients.topic)
    clients.produce(source_cluster, 10)
    pair.run(pair.flow)
    exactly_once = Producer({"bootstrap.servers": source_cluster.bootstrap, "transactional.id": clients.group})
    exactly_once.init_transactions(ANSWER_S)
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        switcher.open("s-1", OPTIONS, "bob")
        done = iter(STEPS[Verb.SWITCHOVER])
        for step in done:
            switcher.step("s-1", step)
            if step is Step.TOPICS:
                break
        with member(source_cluster, clients.group, [clients.topic]) as reader:
            wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member")
            with pytest.raises(Refused) as refused:
                switcher.step("s-1", Step.GROUPS)
            code, facts = data_of(refused.value)
            assert (code, facts["names"], facts["cluster"]) == ("switch.members", clients.group, pair.aliases[0])
            where = reader.consumer_group_metadata()
            exactly_once.begin_transaction()
            exactly_once.send_offsets_to_transaction([TopicPartition(clients.topic, 0, 3)], where, ANSWER_S)
        with pytest.raises(Refused) as refused:
            switcher.step("s-1", Step.GROUPS)
        code, facts = data_of(refused.value)
        assert (code, facts["group"], facts["place"]) == ("switch.group-open", clients.group, f"{clients.topic}-0")
        exactly_once.commit_transaction(ANSWER_S)
        state = switcher.step("s-1", next(done))
        (row,) = state.rows(Step.GROUPS)
        assert [f"{pair.aliases[0]}.{clients.topic}", 0, 3] in row["offsets"], "what the transaction committed"
        switcher.step("s-1", next(done))
        with member(source_cluster, clients.group, [clients.topic]) as reader:
            wait_until(lambda: reader.poll(0.1) is not None, "a first record for the member")
            with pytest.raises(Refused) as refused:
                switcher.step("s-1", next(done))
            code, facts = data_of(refused.value)
            assert (code, facts["names"], facts["switch"]) == ("switch.members.twice", clients.group, "s-1")
        assert switcher.abandon("s-1", "a consumer came back").end is not None


def test_a_switch_goes_on_as_it_was_asked_for_or_not_at_all(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path
) -> None:
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    create_topic(source_cluster, clients.topic, PARTITIONS)
    clients.produce(source_cluster, 4)
    pair.run(pair.flow)
    settings, called = pair.settings, tmp_path / "called"
    given = SwitchHook(command=f"sh -c 'echo $FERRY_SWITCH_SWITCH >> {called}'", url=None)

    def with_hook() -> Switcher:
        return Switcher(
            settings, settings.flow(pair.flow), Verb.SWITCHOVER, who="ann@desk-7", hook=given, patience_s=ANSWER_S
        )

    with with_hook() as switcher:
        state = switcher.open("s-1", OPTIONS, "bob")
        assert state.switch.options.redirect == ("command",)
        began = switcher.preview("s-1", OPTIONS)
        for step in STEPS[Verb.SWITCHOVER]:
            if step is Step.REDIRECT:
                break
            state = switcher.step("s-1", step)
        gone_on = switcher.preview("s-1", OPTIONS)
        assert [(one.name, one.ok) for one in gone_on.readiness.checks] == [
            (one.name, one.ok) for one in began.readiness.checks
        ], "the pause of its own does not stand against it"
        assert gone_on.steps[0][0] is Step.REDIRECT
    with pair.switcher(Verb.FAILOVER) as switcher, pytest.raises(BadInput, match=r"s-1 .*switchover "):
        switcher.known("s-1")
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        looks: list[Callable[[], object]] = [
            lambda: switcher.known("s-1"),
            lambda: switcher.preview("s-1", OPTIONS),
            lambda: switcher.open("s-1", OPTIONS, "bob"),
            lambda: switcher.step("s-1", Step.REDIRECT),
        ]
        for look in looks:
            with pytest.raises(BadInput) as refused:
                look()
            code, facts = data_of(refused.value)
            assert (code, facts["switch"], facts["options"]) == ("switch.needs-hook", "s-1", "--redirect-command")
    assert not called.exists()
    with with_hook() as switcher:
        assert switcher.known("s-1") == state
        switcher.run("s-1")
        for look in (lambda: switcher.preview("s-1", OPTIONS), lambda: switcher.open("s-1", OPTIONS, "bob")):
            with pytest.raises(Refused) as ended:
                look()
            code, facts = data_of(ended.value)
            assert (code, facts["switch"], facts["outcome"]) == ("switch.ended", "s-1", "finished")
            assert str(facts["who"]).startswith("ann@desk-7")
    assert called.read_text() == "s-1\n"


@pytest.mark.timeout(180)
def test_a_source_that_is_half_gone_is_failed_over_and_each_partition_says_what_is_certain(
    three_brokers: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = Pair(here=three_brokers, there=target_cluster, topic=clients.topic, group=clients.group)
    create_topic(three_brokers, clients.topic, PARTITIONS)
    clients.produce(three_brokers, 10)
    pair.run(pair.flow)
    clients.produce(three_brokers, 6)
    info = AdminClient({"bootstrap.servers": three_brokers.bootstrap}).list_topics(clients.topic, timeout=ANSWER_S)
    leaders = {number: one.leader for number, one in info.topics[clients.topic].partitions.items()}
    assert leaders[0] != leaders[1], "one replica each, on brokers of their own"

    three_brokers.broker(leaders[1]).kill()
    flow = pair.settings.flow(pair.flow)

    def is_seen() -> bool:
        """The controller has noticed."""
        try:
            ready = check_readiness(flow, Rpo(), back=True, patience_s=5 * PATIENCE)
        except Unreachable:
            return False
        return f"{clients.topic}-1" in next(one for one in ready.checks if one.name == "source").message

    wait_until(is_seen, "a check that names the partition", 60)
    with (
        FlowConnections.of(flow, patience_s=5 * PATIENCE) as both,
        pytest.raises(Refused, match=f"{clients.topic}-1.*fail"),
    ):
        both.run(lambda: moved_since(flow, both.source, []))
    refuses(pair, Verb.SWITCHOVER, "switch.not-ready", match=f"{clients.topic}-1", check="source")
    with pair.switcher(Verb.FAILOVER) as switcher:
        switcher.open("half-1", OPTIONS, "bob")
        state = switcher.run("half-1")
    losses = {row["partition"]: (row["records"], row["certain"]) for row in state.rows(Step.LOSS)}
    assert losses == {0: (3, True), 1: (0, False)}
