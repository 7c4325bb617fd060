"""Switchover, failover and failback by a real Airflow: a person approves, and a step that was killed goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from ferry.config.settings import parse_settings
from ferry.model.switch import Step, SwitchOutcome, SwitchState, Verb
from ferry.run.switch.history import all_switches
from tests.airflow.conftest import Flows
from tests.harness import commit_offsets, committed_offsets, create_topic, numbered, producer, read_topic, send

pytestmark = pytest.mark.timeout(900)

WAIT_SECONDS = 400
"""A dozen tasks, each of which reads the DAG file; a wait for a condition, however busy the machine."""

QUICK = {"quiet_seconds": 1, "reason": "the data centre is moved"}


def dag(verb: str, alias: str) -> str:
    return f"ferry_{verb}__{alias}__t{alias}"


def asked(flows: Flows, verb: str, alias: str, conf: Mapping[str, object]) -> str:
    """Trigger a switch and wait until it asks; the run."""
    return flows.asked(dag(verb, alias), conf)


def switches(flows: Flows, alias: str) -> dict[Verb, SwitchState]:
    """The switches that the ledgers of a flow and of its way back have; one of a verb."""
    settings = parse_settings(flows.lab(alias).text, "lab.properties")
    found, unread = all_switches(settings, settings.flow(f"{alias}->t{alias}"), patience_s=20)
    assert not unread
    return {state.switch.verb: state for state in found}


def test_a_switchover_is_approved_killed_resumed_and_taken_back(flows: Flows) -> None:
    rest, topic = flows.rest, "swap-orders"
    create_topic(flows.source, topic, 2)
    send(producer(flows.source), topic, numbered(100, partitions=2))
    commit_offsets(flows.source, "swap-billing", {(topic, 0): 10, (topic, 1): 20})
    flows.lab("swap").micro_run()
    send(producer(flows.source), topic, numbered(100, partitions=2, start=100))

    name = dag("switchover", "swap")
    before_ms = time.time_ns() // 1_000_000
    run = asked(flows, "switchover", "swap", {**QUICK, "quiet_seconds": 8})
    body = rest.question(name, run, "approve")["body"]
    for words in (QUICK["reason"], "clients go from swap to tswap", "run swap->tswap until nothing is left to copy"):
        assert str(words) in body
    assert not switches(flows, "swap"), "nothing is written before somebody has approved"
    rest.answer(name, run, "approve", "Approve")

    rest.wait_task(name, run, "quiet", ("running",))
    rest.set_task_state(name, run, "quiet", "failed")
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "failed"
    assert "its next step is quiet: clear that task to go on" in rest.log(name, run, "report")
    assert switches(flows, "swap")[Verb.SWITCHOVER].end is None
    rest.clear_from(name, run, "quiet")
    rest.wait_run(name, run, states=("queued", "running"))
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "success", rest.states(name, run)

    done = switches(flows, "swap")[Verb.SWITCHOVER]
    assert done.end is not None
    assert done.end.outcome is SwitchOutcome.FINISHED
    assert done.switch.approved_by == "admin"
    assert before_ms < done.switch.approved_ms < done.done[Step.QUIET].begun_ms
    assert len(read_topic(flows.target.bootstrap, f"swap.{topic}")[0]) == 100
    assert committed_offsets(flows.target, "swap-billing", f"swap.{topic}", 2) == {0: 10, 1: 20}
    assert "approved by admin" in rest.log(name, run, "report", 2)

    # And back: only what the other cluster got since.
    send(producer(flows.target), topic, numbered(7, start=1_000))
    back = dag("failback", "swap")
    run = asked(flows, "failback", "swap", {**QUICK, "export": str(flows.home.path / "stranded.jsonl")})
    rest.answer(back, run, "approve", "Approve")
    assert rest.wait_run(back, run, seconds=WAIT_SECONDS) == "success", rest.states(back, run)
    assert switches(flows, "swap")[Verb.FAILBACK].end is not None
    copies = sum(len(read_topic(flows.source.bootstrap, f"tswap.{topic}")[part]) for part in range(2))
    assert copies == 7


def test_a_failover_counts_what_is_lost(flows: Flows) -> None:
    rest, topic = flows.rest, "flee-orders"
    create_topic(flows.source, topic)
    send(producer(flows.source), topic, numbered(50))
    flows.lab("flee").micro_run()
    send(producer(flows.source), topic, numbered(5, start=50))
    name = dag("failover", "flee")
    run = asked(flows, "failover", "flee", {})
    rest.answer(name, run, "approve", "Approve")
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "success", rest.states(name, run)
    state = switches(flows, "flee")[Verb.FAILOVER]
    assert [row["records"] for row in state.rows(Step.LOSS) if row["topic"] == topic] == [5]


def test_whoever_refuses_or_does_not_answer_has_changed_nothing(flows: Flows) -> None:
    rest = flows.rest
    create_topic(flows.source, "refrain-t")
    send(producer(flows.source), "refrain-t", numbered(5))
    flows.lab("refrain").micro_run()
    name = dag("switchover", "refrain")

    run = asked(flows, "switchover", "refrain", QUICK)
    rest.answer(name, run, "approve", "Reject")
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "success"
    states = rest.states(name, run)
    assert (states.pop("preview"), states.pop("approve")) == ("success", "success")
    assert set(states.values()) == {"skipped"}

    run = asked(flows, "switchover", "refrain", {**QUICK, "approval_timeout_seconds": 1})
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "failed"
    assert "nobody approved in time: nothing was done" in rest.log(name, run, "approve", 1)

    run = rest.trigger(name, {**QUICK, "dry_run": True})
    assert rest.wait_run(name, run, seconds=WAIT_SECONDS) == "success"
    assert rest.states(name, run)["approve"] == "skipped"
    assert "run refrain->trefrain until nothing is left to copy" in rest.log(name, run, "preview")
    assert not switches(flows, "refrain")
