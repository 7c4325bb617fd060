"""Switches whose processes are killed by SIGKILL in each step, and continued: no record is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.switch_codec import switch_states
from ferry.model.switch import STEPS, Step, SwitchOutcome, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess
from tests.kafka.chaos.test_kills import pause
from tests.kafka.run.switching import Clients, Pair, pair_of, read_there
from tests.program import start
from tests.soak.switches import QUICK

TRIES = 4
"""How often a step is begun again until a kill hits it; one that is quicker than the look at the ledger is passed."""


def begun_by_a_process(pair: Pair, verb: Verb, switch: str, config: Path, *options: str) -> subprocess.Popen[str]:
    """The command, as an operator gives it."""
    flow = pair.flow if verb is not Verb.FAILBACK else pair.back
    return start(verb.value, flow, "--id", switch, "--approve-by", "bob", *options, config=config)


def killed_in_each_step(
    pair: Pair, verb: Verb, switch: str, folder: Path, rng: random.Random, *options: str
) -> tuple[SwitchState, set[Step]]:
    """The finished switch, and the steps in which a process of it died.

    `pair` leads where clients go; of a failback the flow that is named is the one back.
    """
    config = folder / f"{switch}.properties"
    config.write_text(pair.text)
    settings = pair.settings
    watched = settings.flow(pair.flow)
    hit: set[Step] = set()

    def state() -> SwitchState | None:
        with LedgerAccess(watched, patience_s=30) as ledger:
            return switch_states(ledger.view()).get(switch) if ledger.exists() else None

    for step in STEPS[verb]:
        for _ in range(TRIES):
            now = state()
            if now is not None and step in now.done:
                break
            process = begun_by_a_process(pair, verb, switch, config, *options)
            while process.poll() is None:
                now = state()
                if now is not None and (step in now.begun or step in now.done):
                    pause(rng.uniform(0.0, 0.2))
                    os.killpg(process.pid, signal.SIGKILL)
                    break
            process.communicate(timeout=300)
            now = state()
            if now is not None and step in now.begun and step not in now.done:
                hit.add(step)
                break
    process = begun_by_a_process(pair, verb, switch, config, *options)
    out, err = process.communicate(timeout=600)
    now = state()
    assert now is not None, (out, err)
    assert now.end is not None, (out, err)
    assert now.end.outcome is SwitchOutcome.FINISHED
    return now, hit


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
    deaths: Counter[tuple[Verb, Step]] = Counter()

    _, hit = killed_in_each_step(pair, Verb.SWITCHOVER, "over-1", tmp_path, rng, *QUICK)
    deaths.update((Verb.SWITCHOVER, step) for step in hit)
    clients.produce(target_cluster, 20)
    clients.consume(target_cluster, on_there, 15)
    export = str(tmp_path / "stranded.jsonl")
    _, hit = killed_in_each_step(pair.turned, Verb.FAILBACK, "back-1", tmp_path, rng, *QUICK, "--export", export)
    deaths.update((Verb.FAILBACK, step) for step in hit)
    clients.produce(source_cluster, 20)
    clients.consume(source_cluster, on_here, 15)
    pair.run(pair.flow)
    assert len(clients.read) == len(set(clients.read)), "planned switches double nothing"
    clients.consume(source_cluster, on_here, 5)

    state, hit = killed_in_each_step(pair.lost, Verb.FAILOVER, "lost-1", tmp_path, rng)
    deaths.update((Verb.FAILOVER, step) for step in hit)
    clients.produce(target_cluster, 10)
    clients.consume(target_cluster, on_there)
    assert set(clients.read) == set(clients.produced), "nothing is lost"
    (row,) = [row for row in state.rows(Step.GROUPS) if row["group"] == clients.group]
    assert len(clients.read) - len(set(clients.read)) <= row["again"]
    for verb in Verb:
        steps = {step for of, step in deaths if of is verb}
        assert len(steps) >= 3, deaths
        assert steps & {Step.GROUPS, Step.STOP, Step.REVERSE}, f"a step that changes the clusters: {deaths}"
