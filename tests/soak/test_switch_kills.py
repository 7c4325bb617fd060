"""Switches whose processes are killed by SIGKILL in each step, and continued: no record is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.model.switch import STEPS, Step, SwitchState, Verb
from tests.kafka.run.switching import Clients, Pair, pair_of, read_there
from tests.soak.switches import AT_ITS_END, QUICK, REQUESTS, finished, is_asleep, operator, sleeper, states_of, written
from tests.tiers import PATIENCE


def killed_in_each_step(
    pair: Pair, verb: Verb, switch: str, folder: Path, rng: random.Random, *options: str
) -> SwitchState:
    """The finished switch: in each step a process of it has died at its beginning, after some requests and at its end.

    `pair` leads where clients go; of a failback the flow that is named is the one back.
    """
    config = written(pair, folder)
    for step in STEPS[verb]:
        for requests in (0, rng.choice(REQUESTS), AT_ITS_END):
            process = sleeper(pair, verb, switch, config, [step], requests, *options)
            assert is_asleep(process), (step, requests, process.communicate())
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=300 * PATIENCE)
            now = states_of(pair)[switch]
            assert step in now.begun, (step, requests)
            assert step not in now.done, (step, requests)
    process = operator(pair, verb, switch, config, *options)
    out, err = process.communicate(timeout=600 * PATIENCE)
    assert process.returncode == 0, (out, err)
    return finished(pair, switch)


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_all_three_verbs_survive_a_kill_in_any_step(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    rng: random.Random,
    tmp_path: Path,
    policy: str,
) -> None:
    clients = Clients(topic=topic, group=f"g-{topic}")
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    on_there, on_here = read_there(pair), read_there(pair.turned)
    clients.produce(source_cluster, 40)
    clients.consume(source_cluster, [clients.topic], 25)
    pair.run(pair.flow)

    killed_in_each_step(pair, Verb.SWITCHOVER, "over-1", tmp_path, rng, *QUICK)
    clients.produce(target_cluster, 20)
    clients.consume(target_cluster, on_there, 15)
    export = str(tmp_path / "stranded.jsonl")
    killed_in_each_step(pair.turned, Verb.FAILBACK, "back-1", tmp_path, rng, *QUICK, "--export", export)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, on_here, 15)
    pair.run(pair.flow)
    assert len(clients.read) == len(set(clients.read)), "planned switches double nothing"
    clients.consume(source_cluster, on_here, 5)

    state = killed_in_each_step(pair.lost, Verb.FAILOVER, "lost-1", tmp_path, rng)
    clients.produce(target_cluster, 10)
    clients.consume(target_cluster, on_there)
    assert set(clients.read) == set(clients.produced), "nothing is lost"
    (row,) = [row for row in state.rows(Step.GROUPS) if row["group"] == clients.group]
    assert len(clients.read) - len(set(clients.read)) <= row["again"]
