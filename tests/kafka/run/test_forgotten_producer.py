"""What a forgotten producer writes to the old cluster behind a switch is found, whenever it comes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.model import Plan, RefusalKind
from ferry.model.switch import STEPS, Step, SwitchOptions, SwitchState, Verb
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Message, create_topic, producer, send
from tests.kafka.run.switching import IDENTITY, OPTIONS, PARTITIONS, Clients, Pair, begin_group, rest
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

FORGOTTEN = [b"f-0", b"f-1", b"f-2"]


def forgotten(cluster: RunningCluster, topic: str) -> None:
    """Three records of a producer that nobody has stopped."""
    send(producer(cluster), topic, [Message(value=value, partition=0) for value in FORGOTTEN])


def run_back(pair: Pair, name: str) -> Plan:
    """A run of the flow back; what it refuses is in its plan."""
    with MicroRuns(pair.settings.flow(pair.back), patience_s=ANSWER_S) as runs:
        plan = runs.open_new(name, local_origin())
        attempt = runs.begin(plan, local_origin())
        runs.record_outcome(plan, attempt, copy_all(runs, plan, attempt))
        checkpoint(runs, plan.run)
    return plan


def switched(pair: Pair, before: Step | None, options: SwitchOptions = OPTIONS) -> SwitchState:
    """A switchover, with the producer at work before that step."""
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        switcher.open("over-1", options, "bob")
        for step in STEPS[Verb.SWITCHOVER]:
            if step is before:
                forgotten(pair.here, pair.topic)
            switcher.step("over-1", step)
        return switcher.finish("over-1")


def pair_of(here: RunningCluster, there: RunningCluster, clients: Clients, more: dict[str, str]) -> Pair:
    """Ten records here, all copied there."""
    pair = Pair(here=here, there=there, topic=clients.topic, group=clients.group, more=more)
    create_topic(here, clients.topic, PARTITIONS)
    begin_group(here, clients.group, clients.topic)
    if more:
        rest(pair)
    clients.produce(here, 10)
    pair.run(pair.flow)
    return pair


@pytest.mark.timeout(180)
@pytest.mark.parametrize("when", ["before reverse", "after reverse", "after the first run back"])
def test_with_names_that_are_kept_the_flow_back_refuses_what_somebody_else_wrote(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path, when: str
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, {"replication.policy.class": IDENTITY})
    state = switched(pair, Step.REVERSE if when == "before reverse" else None)
    stayed = state.fact(Step.REVERSE, "stayed")
    assert stayed == ([[clients.topic, 0, 5, 8]] if when == "before reverse" else [])
    clients.produce(target_cluster, 6)
    if when == "after reverse":
        forgotten(source_cluster, clients.topic)
    if when == "after the first run back":
        assert run_back(pair, "first").refusals == ()
        forgotten(source_cluster, clients.topic)
        clients.produce(target_cluster, 6)

    plan = run_back(pair, "second")
    assert [(one.partition, one.kind) for one in plan.refusals] == [(0, RefusalKind.FOREIGN_WRITER)]
    ready = check_readiness(pair.settings.flow(pair.back), Rpo(), back=True, patience_s=ANSWER_S)
    assert "refusals" in [check.name for check in ready.failed]

    file = tmp_path / "stranded.jsonl"
    skipping = replace(pair, more={**pair.more, "ferry.guard.foreign.writer": "skip"})
    assert run_back(skipping, "third").refusals == ()
    with skipping.switcher(Verb.FAILBACK) as switcher:
        switcher.open("back-1", replace(OPTIONS, export=str(file)), "bob")
        state = switcher.run("back-1")
    assert [json.loads(line)["value"].encode() for line in file.read_text().splitlines()] == FORGOTTEN


@pytest.mark.timeout(180)
def test_a_step_that_is_done_again_accounts_for_no_more_than_the_first_time(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is killed behind the resume, before the journal has it."""
    pair = pair_of(source_cluster, target_cluster, clients, {"replication.policy.class": IDENTITY})
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        switcher.open("over-1", OPTIONS, "bob")
        for step in STEPS[Verb.SWITCHOVER][:-1]:
            switcher.step("over-1", step)
        with monkeypatch.context() as patch:
            patch.setattr(switcher._journal, "done", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                switcher.step("over-1", Step.REVERSE)
        forgotten(source_cluster, clients.topic)
        switcher.step("over-1", Step.REVERSE)
        switcher.finish("over-1")
    clients.produce(target_cluster, 6)
    assert [one.kind for one in run_back(pair, "first").refusals] == [RefusalKind.FOREIGN_WRITER]


@pytest.mark.timeout(180)
def test_with_names_of_their_own_the_switch_says_what_stayed_and_the_way_back_exports_it(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, {})
    state = switched(pair, Step.REVERSE)
    assert state.fact(Step.REVERSE, "stayed") == [[clients.topic, 0, 5, 8]]
    clients.produce(target_cluster, 6)
    assert run_back(pair, "first").refusals == ()
    file = tmp_path / "stranded.jsonl"
    with pair.switcher(Verb.FAILBACK) as switcher:
        switcher.open("back-1", replace(OPTIONS, export=str(file)), "bob")
        switcher.run("back-1")
    assert [json.loads(line)["value"].encode() for line in file.read_text().splitlines()] == FORGOTTEN


@pytest.mark.timeout(180)
def test_a_switch_that_starts_no_flow_back_says_what_stayed_too(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, {})
    state = switched(pair, Step.REVERSE, replace(OPTIONS, reverse=False))
    assert state.fact(Step.REVERSE, "started") is False
    assert state.fact(Step.REVERSE, "stayed") == [[clients.topic, 0, 5, 8]]


@pytest.mark.timeout(180)
def test_where_the_old_cluster_does_not_answer_any_more_the_switch_ends_and_says_that_nobody_looked(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, {})
    with pair.switcher(Verb.SWITCHOVER) as switcher:
        switcher.open("over-1", replace(OPTIONS, reverse=False), "bob")
        for step in STEPS[Verb.SWITCHOVER][:-1]:
            switcher.step("over-1", step)
    with pair.lost.switcher(Verb.SWITCHOVER) as switcher:
        switcher.step("over-1", Step.REVERSE)
        state = switcher.finish("over-1")
    assert state.fact(Step.REVERSE, "stayed") == []
    assert state.fact(Step.REVERSE, "unseen") == [[clients.topic, number] for number in range(PARTITIONS)]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("reverse", [True, False], ids=["the flow back runs", "no flow back"])
def test_with_names_of_their_own_what_comes_after_the_last_look_is_named_until_the_way_back_exports_it(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path, reverse: bool
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, {})
    state = switched(pair, None, replace(OPTIONS, reverse=reverse))
    assert state.fact(Step.REVERSE, "stayed") == []
    forgotten(source_cluster, clients.topic)
    clients.produce(target_cluster, 6)
    if reverse:
        assert run_back(pair, "first").refusals == ()

    file = tmp_path / "stranded.jsonl"
    options = replace(OPTIONS, export=str(file))
    with pair.switcher(Verb.FAILBACK) as switcher:
        (check,) = [one for one in switcher.preview("back-1", options).readiness.checks if one.name == "stranded"]
        assert check.ok, "the failback exports it"
        assert check.message.startswith("3 records ")
        assert f" came to 1 partition of {pair.aliases[0]} " in check.message
        switcher.open("back-1", options, "bob")
        switcher.run("back-1")
    assert [json.loads(line)["value"].encode() for line in file.read_text().splitlines()] == FORGOTTEN


@pytest.mark.timeout(180)
def test_readiness_of_the_flow_back_names_what_comes_after_the_last_look(
    source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients, tmp_path: Path
) -> None:
    pair = pair_of(source_cluster, target_cluster, clients, {})
    switched(pair, None)
    clients.produce(target_cluster, 6)
    run_back(pair, "first")
    config = tmp_path / "pair.properties"
    config.write_text(pair.text)

    def stranded(flow: str) -> list[str]:
        said = ferry("readiness", flow, "--json", config=config)
        return [one["message"] for one in said.json("readiness")["checks"] if one["name"] == "stranded"]

    (message,) = stranded(pair.back)
    assert f"nothing came to {PARTITIONS} partitions" in message
    forgotten(source_cluster, clients.topic)
    (message,) = stranded(pair.back)
    assert "3 records" in message
    assert f"{clients.topic}-0" in message
    assert stranded(pair.flow) == [], "clients are not on the cluster that it leads from"
