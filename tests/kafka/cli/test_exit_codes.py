"""What the shell is told when ledger, plan or target topic is not as it must be: one sentence and an exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.codec import IDENTICAL_VERSION
from ferry.protocol.names import ledger_topic
from ferry.run.micro_run import local_origin
from tests.harness import Lab, Message, create_topic, delete_topic, new_alias, numbered, producer, send
from tests.program import Answer
from tests.program import warm_ferry as ferry


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow over one topic with ten records."""
    create_topic(source_cluster, topic)
    send(producer(source_cluster), topic, numbered(10))
    return Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))


@pytest.fixture
def config(lab: Lab, tmp_path: Path) -> Path:
    """The flow's file."""
    return lab.write(tmp_path)


def tamper(lab: Lab, key: str, value: bytes) -> None:
    """Somebody else writes to the flow's ledger."""
    send(producer(lab.target), ledger_topic(lab.alias), [Message(key=key.encode(), value=value)])


def said(answer: Answer) -> str:
    """The one sentence on standard error, which the JSON object repeats."""
    assert answer.err.startswith("ferry: ")
    assert answer.err.count("\n") == 1, answer.err
    message: str = answer.json("error")["error"]["message"]
    assert answer.err == f"ferry: {message}\n"
    return message


def test_a_malformed_plan_is_refused_and_a_new_run_goes_on(lab: Lab, config: Path) -> None:
    with lab.runs() as runs:
        plan = runs.open_run("broken", local_origin())
    tamper(lab, f'["plan","live","broken",{plan.generation},0]', b"{}")
    answer = ferry("run", "--resume", "broken", "--json", config=config)
    assert answer.code == 2, answer.err
    assert "the sealed digest" in said(answer)
    assert "start a new run" in said(answer)
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == 10


@pytest.mark.parametrize("command", ["run", "lag"])
def test_a_ledger_of_a_newer_format_is_not_read(lab: Lab, config: Path, command: str) -> None:
    with lab.runs() as runs:
        runs.open_run("first", local_origin())
    tamper(lab, '["run","live","later"]', json.dumps({"v": 99}).encode())
    try:
        answer = ferry(command, "--json", config=config)
    finally:  # flows that look at their neighbours would stop at it
        delete_topic(lab.target, ledger_topic(lab.alias))
    assert answer.code == 2, answer.err
    assert re.search(f" 99, .* {IDENTICAL_VERSION}: ", said(answer))


def test_a_target_topic_that_was_created_again_is_refused_and_the_run_failed(
    lab: Lab, config: Path, topic: str
) -> None:
    assert ferry("run", config=config).code == 0
    delete_topic(lab.target, lab.target_topic(topic))
    create_topic(lab.target, lab.target_topic(topic))
    answer = ferry("run", "--json", "--quiet", config=config)
    assert (answer.code, answer.err) == (1, "")
    body = answer.json("run")
    assert (body["state"], body["records"], body["receipts"]) == ("failed", 0, [])
    (refusal,) = body["refusals"]
    assert (refusal["topic"], refusal["kind"]) == (topic, "target-changed")
    assert lab.target_topic(topic) in refusal["message"]
