"""Two operators at one switch, each a process: they begin together, or one sleeps in a step and wakes too late."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.model.switch import STEPS, Step, SwitchOutcome, SwitchState, Verb
from tests.kafka.run.switching import Clients, Pair, pair_of, read_there
from tests.soak.switches import AT_ITS_END, QUICK, REQUESTS, finished, is_asleep, operator, sleeper, states_of, written
from tests.tiers import PATIENCE

WAYS = (Verb.SWITCHOVER, Verb.FAILBACK)
ENDED = {0, 2, 4}


def ended(process: subprocess.Popen[str], codes: set[int] = ENDED) -> str:
    """Wait for an operator's command; what it said."""
    out, err = process.communicate(timeout=300 * PATIENCE)
    assert process.returncode in codes, (process.returncode, out, err)
    assert "Traceback" not in err, err
    return out + err


def leading(pair: Pair, number: int) -> tuple[Pair, Verb]:
    """There and back in turn, and the pair that leads where clients go."""
    return (pair, WAYS[0]) if number % 2 == 0 else (pair.turned, WAYS[1])


def options_of(folder: Path, verb: Verb, number: int) -> list[str]:
    """As short as they may be; a failback has a file for what it finds."""
    export = ["--export", str(folder / f"stranded-{number}.jsonl")] if verb is Verb.FAILBACK else []
    return [*QUICK, *export]


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_an_operator_who_sleeps_in_any_step_and_wakes_late_changes_nothing(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    rng: random.Random,
    tmp_path: Path,
    policy: str,
) -> None:
    clients = Clients(topic=topic, group=f"g-{topic}")
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    clients.produce(source_cluster, 20)
    asleep: set[tuple[Verb, Step]] = set()
    for number, at in enumerate(one for step in range(len(STEPS[WAYS[1]])) for one in (step, step)):
        way, verb = leading(pair, number)
        step = STEPS[verb][at % len(STEPS[verb])]
        config, name, options = written(pair, tmp_path), f"s-{number}", options_of(tmp_path, verb, number)
        topics = read_there(way)
        way.run(way.flow)
        clients.produce(way.here, 4)
        late = sleeper(way, verb, name, config, [step], rng.choice((*REQUESTS, AT_ITS_END)), *options)
        assert is_asleep(late), (verb, step, late.communicate())
        asleep.add((verb, step))
        try:
            ended(operator(way, verb, name, config, *options), {0})
            finished(way, name)
            clients.produce(way.there, 3)
            clients.consume(way.there, topics)
        finally:
            os.killpg(late.pid, signal.SIGCONT)
        ended(late)
        clients.produce(way.there, 3)
        clients.consume(way.there, topics)
        assert sorted(clients.read) == sorted(clients.produced), (verb, step, "each is read once")
        assert len([state for state in states_of(way).values() if state.end is None]) == 0
    assert asleep == {(verb, step) for verb in WAYS for step in STEPS[verb]}


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_an_operator_who_sleeps_in_any_step_of_a_failover_and_wakes_late_changes_nothing(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    topic: str,
    rng: random.Random,
    tmp_path: Path,
    policy: str,
) -> None:
    """The source counts as lost; a failback lies between two failovers."""
    clients = Clients(topic=topic, group=f"g-{topic}")
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    again = 0
    for number, step in enumerate(STEPS[Verb.FAILOVER]):
        clients.produce(source_cluster, 20)
        pair.run(pair.flow)
        clients.consume(source_cluster, read_there(pair.turned) if number else [topic], 12)
        config, name = written(pair.lost, tmp_path), f"lost-{number}"
        late = sleeper(pair.lost, Verb.FAILOVER, name, config, [step], rng.choice((*REQUESTS, AT_ITS_END)))
        assert is_asleep(late), (step, late.communicate())
        try:
            ended(operator(pair.lost, Verb.FAILOVER, name, config), {0})
            state = finished(pair.lost, name)
            again += sum(row["again"] for row in state.rows(Step.GROUPS) if row["group"] == clients.group)
            clients.produce(target_cluster, 5)
            clients.consume(target_cluster, read_there(pair))
        finally:
            os.killpg(late.pid, signal.SIGCONT)
        ended(late)
        clients.produce(target_cluster, 5)
        clients.consume(target_cluster, read_there(pair))
        assert set(clients.read) == set(clients.produced), (step, "nothing is lost")
        assert len(clients.read) - len(set(clients.read)) <= again, (step, "no more is read again than the switch said")
        config, options = written(pair.turned, tmp_path), options_of(tmp_path, Verb.FAILBACK, number)
        ended(operator(pair.turned, Verb.FAILBACK, f"back-{number}", config, *options), {0})


def begun_together(pair: Pair, verb: Verb, names: Sequence[str], folder: Path, *options: str) -> SwitchState:
    """The one switch that is finished after operators have begun these at the same time."""
    config = written(pair, folder)
    for process in [operator(pair, verb, name, config, *options) for name in names]:
        ended(process)
    for name, state in states_of(pair).items():
        if name in names and state.end is None:  # both were overtaken by each other: the next one ends it
            ended(operator(pair, verb, name, config, *options), {0})
    ends = [(state, state.end.outcome) for name, state in states_of(pair).items() if name in names and state.end]
    (done,) = [state for state, outcome in ends if outcome is SwitchOutcome.FINISHED]
    return done


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_of_operators_who_begin_together_one_goes_on(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, policy: str
) -> None:
    clients = Clients(topic=topic, group=f"g-{topic}")
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    clients.produce(source_cluster, 20)
    for number in range(12):
        way, verb = leading(pair, number)
        names = [f"s-{number}"] * 2 if number % 4 < 2 else [f"s-{number}-ann", f"s-{number}-bob"]
        way.run(way.flow)
        clients.produce(way.here, 4)
        begun_together(way, verb, names, tmp_path, *options_of(tmp_path, verb, number))
        clients.produce(way.there, 3)
        clients.consume(way.there, read_there(way))
        assert sorted(clients.read) == sorted(clients.produced), (number, "each is read once")


@pytest.mark.parametrize("policy", ["Default", "Identity"])
def test_of_operators_who_fail_over_together_one_goes_on(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, policy: str
) -> None:
    """With one id, and then with two; a failback lies between."""
    clients = Clients(topic=topic, group=f"g-{topic}")
    pair = pair_of(source_cluster, target_cluster, clients, policy)
    again = 0
    for number, names in enumerate((["lost-0"] * 2, ["lost-1-ann", "lost-1-bob"])):
        clients.produce(source_cluster, 20)
        pair.run(pair.flow)
        clients.consume(source_cluster, read_there(pair.turned) if number else [topic], 12)
        state = begun_together(pair.lost, Verb.FAILOVER, names, tmp_path)
        (row,) = [one for one in state.rows(Step.GROUPS) if one["group"] == clients.group]
        again += row["again"]
        clients.produce(target_cluster, 5)
        clients.consume(target_cluster, read_there(pair))
        assert set(clients.read) == set(clients.produced), (names, "nothing is lost")
        assert len(clients.read) - len(set(clients.read)) <= again
        if number == 0:
            config, options = written(pair.turned, tmp_path), options_of(tmp_path, Verb.FAILBACK, number)
            ended(operator(pair.turned, Verb.FAILBACK, "back-0", config, *options), {0})
