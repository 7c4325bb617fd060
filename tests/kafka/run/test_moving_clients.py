"""Clients that produce and consume while they are switched there and back, and away from a dead cluster."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.errors import FerryError
from ferry.features.groups.acts.of_run import checkpoint
from ferry.model.switch import Step, StepDone, SwitchOptions, SwitchState, Verb
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import create_topic, wait_until
from tests.kafka.run.movers import Directory, Home, Movers
from tests.kafka.run.switching import IDENTITY, OPTIONS, PARTITIONS, Clients, Pair, begin_group, rest
from tests.tiers import ANSWER_S, IN_PART, PATIENCE

THERE_AND_BACK = [Verb.SWITCHOVER, Verb.FAILBACK] * (1 if IN_PART else 2)
"""What is planned, before a cluster is lost."""

RUNNING = replace(OPTIONS, interrupt=True)
"""Scheduled runs come all the time, as they do in life."""


@contextmanager
def scheduled(pair: Pair) -> Iterator[list[str]]:
    """Micro-runs of both flows, one behind the other, without an end; and what they could not do."""
    over, said = threading.Event(), list[str]()

    def run(flow: str) -> None:
        with MicroRuns(pair.settings.flow(flow), patience_s=5 * PATIENCE) as runs:
            plan = runs.open_new(f"run-{secrets.token_hex(4)}", local_origin())
            said.extend(refusal.message for refusal in plan.refusals)
            if runs.unfinished_slices(plan):
                attempt = runs.begin(plan, local_origin())
                runs.record_outcome(plan, attempt, copy_all(runs, plan, attempt))
            checkpoint(runs, plan.run)

    def loop() -> None:
        while not over.wait(0.1):
            for flow in (pair.flow, pair.back):
                try:
                    run(flow)
                except FerryError as error:  # a switch has come between, or a cluster is gone
                    said.append(str(error))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield said
    finally:
        over.set()
        thread.join(2 * ANSWER_S)


def switch(pair: Pair, verb: Verb, name: str, options: SwitchOptions, movers: Movers) -> SwitchState:
    """Clients are told to stop when the switch waits for it; where they go on they learn from the hook."""
    directory = movers.directory

    def told(step: Step, done: StepDone | None) -> None:
        if step is Step.QUIET and done is None:
            directory.halt()
            wait_until(lambda: not movers.producing, "the end of the producers", 60)

    with pair.switcher(verb) as switcher:
        switcher.open(name, options, "bob")
        state = switcher.run(name, told)
    assert directory.calls[-1]["switch"] == name
    return state


@pytest.mark.timeout(240 if IN_PART else 600)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_each_record_is_read_once_or_named_while_clients_are_moved_at_work(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    clients: Clients,
    tmp_path: Path,
    impatient: None,
    policy: str,
) -> None:
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    here, there = pair.aliases
    topic, keeps = clients.topic, policy == "Identity"
    directory = Directory(
        homes={
            here: Home(cluster=source_cluster, topics=(topic,) if keeps else (topic, f"{there}.{topic}")),
            there: Home(cluster=target_cluster, topics=(topic,) if keeps else (topic, f"{here}.{topic}")),
        }
    )
    movers = Movers(directory=directory, topic=topic, group=clients.group, partitions=PARTITIONS)
    create_topic(source_cluster, topic, PARTITIONS)
    begin_group(source_cluster, clients.group, topic)
    with directory.served() as url:
        more = {"replication.policy.class": IDENTITY} if keeps else {}
        pair = replace(pair, more={**more, "ferry.switch.redirect.url": url})
        if keeps:
            rest(pair)
        pair.run(pair.flow)
        directory.move(here)
        with movers.at_work(), scheduled(pair) as said:
            movers.go_on(100)
            for number, verb in enumerate(THERE_AND_BACK):
                export = str(tmp_path / f"stranded-{number}.jsonl")
                state = switch(pair, verb, f"planned-{number}", replace(RUNNING, export=export), movers)
                assert not state.fact(Step.STRANDED, "records"), state.rows(Step.STRANDED)
                movers.go_on(100)
            assert movers.doubled == [], said

            wait_until(lambda: len(movers.acknowledged) > 500, "500 records of the producers")
            source_cluster.brokers[0].kill()
            lost = switch(pair, Verb.FAILOVER, "lost-1", RUNNING, movers)
            assert lost.fact(Step.STOP, "source_answers") is False
            movers.go_on(100)
            # What the group read behind its last checkpoint comes again, and the evidence says where that is. Of what
            # it read as a copy of the other side's records there is no checkpoint.
            frozen = {
                (place, partition): offset
                for row in lost.rows(Step.FREEZE)
                for place, partition, offset, _ in row.get("offsets", ())
            }
            again = {value: movers.readings(value) for value in movers.doubled}
            assert all(
                one.offset >= frozen.get((one.topic, one.partition), 1 << 62) or one.topic == f"{there}.{topic}"
                for one, *_ in again.values()
            ), (frozen, again)
            source_cluster.start()
            file = tmp_path / "stranded.jsonl"
            state = switch(pair, Verb.FAILBACK, "back-1", replace(RUNNING, export=str(file)), movers)
            movers.go_on(100)
            # A planned way back doubles nothing but what a group had read here as the broker died under its commit.
            here_too = {value: movers.readings(value) for value in movers.doubled if value not in again}
            assert here_too.keys() <= movers.uncommitted, here_too
            movers.over.set()
            named = {str(json.loads(line)["value"]).encode() for line in file.read_text().splitlines()}
            wait_until(lambda: bool(movers.failures) or movers.unread <= named, "each record, read or named", 60)
    assert not movers.failures, (movers.failures[:3], said[-3:])
    assert movers.unread <= named, "each record that was acknowledged is read, or named in the file"
