"""Switches whose clusters go away in each step, and come back: the command says so, and clients lose nothing."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.model.switch import STEPS, Step, SwitchState, Verb
from tests.kafka.run.switching import Clients, Pair, pair_of, read_there
from tests.soak.switches import QUICK, REQUESTS, finished, is_asleep, operator, sleeper, written
from tests.tiers import PATIENCE

SPOKEN = {0, 1, 2, 3, 4}
"""What a command says of an outage: never a crash, and never silence."""

TRIES = 4
"""How often a step may fail while the cluster is there again: a broker that has just begun may answer too late."""

IMPATIENT = ("--patience", "4")


def through_outages(
    pair: Pair, verb: Verb, switch: str, folder: Path, rng: random.Random, victim: RunningCluster, *options: str
) -> SwitchState:
    """The finished switch: in each step the cluster was away, from the moment when its process had made some requests.

    A step that does not need the cluster is done without it. The process then sleeps in the next step, too, without it.
    """
    config, left, tries = written(pair, folder), list(STEPS[verb]), TRIES
    while left:
        assert tries, left
        tries -= 1
        process = sleeper(pair, verb, switch, config, left, rng.choice(REQUESTS), *IMPATIENT, *options)
        while is_asleep(process):
            left.pop(0)
            tries = TRIES
            if victim.brokers[0].is_alive():
                victim.brokers[0].kill()
            os.killpg(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=300 * PATIENCE)
        assert process.returncode in SPOKEN, (process.returncode, out, err)
        assert "Traceback" not in err, err
        if process.returncode:
            assert f"ferry {verb} " in err or "ferry: " in err, err
        if not victim.brokers[0].is_alive():
            victim.start()
    process = operator(pair, verb, switch, config, *options)
    out, err = process.communicate(timeout=600 * PATIENCE)
    assert process.returncode == 0, (out, err)
    return finished(pair, switch)


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
@pytest.mark.parametrize("lost", ["old", "new"])
def test_a_cluster_that_goes_away_in_any_step_costs_no_record(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    rng: random.Random,
    tmp_path: Path,
    policy: str,
    lost: str,
) -> None:
    clients = Clients(topic=topic, group=f"g-{topic}")
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    there, home = read_there(pair), read_there(pair.turned)
    clients.produce(source_cluster, 40)
    clients.consume(source_cluster, [topic], 25)
    pair.run(pair.flow)

    victim = source_cluster if lost == "old" else target_cluster
    through_outages(pair, Verb.SWITCHOVER, "over-1", tmp_path, rng, victim, *QUICK)
    clients.produce(target_cluster, 20)
    clients.consume(target_cluster, there, 15)

    victim = target_cluster if lost == "old" else source_cluster
    export = ("--export", str(tmp_path / "stranded.jsonl"))
    state = through_outages(pair.turned, Verb.FAILBACK, "back-1", tmp_path, rng, victim, *QUICK, *export)
    assert state.fact(Step.STRANDED, "records") == 0
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, home)
    assert sorted(clients.read) == sorted(clients.produced), "each is read once"

    if lost == "new":  # of a failover the old one is gone anyway
        clients.produce(source_cluster, 10)
        pair.run(pair.flow)
        clients.consume(source_cluster, home, 4)
        state = through_outages(pair.lost, Verb.FAILOVER, "lost-1", tmp_path, rng, target_cluster)
        clients.produce(target_cluster, 5)
        clients.consume(target_cluster, there)
        assert set(clients.read) == set(clients.produced), "nothing is lost"
        (row,) = [row for row in state.rows(Step.GROUPS) if row["group"] == clients.group]
        assert len(clients.read) - len(set(clients.read)) <= row["again"]
