"""A transaction that its producer never ends: what lies before it is copied, and the plan says what waits."""

from __future__ import annotations

import time

import pytest

from ferry.dev import RunningCluster
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.ledger.report import RunState
from ferry.plan.lag import measure_lag
from ferry.plan.rules import blocking_transactions
from ferry.protocol.names import ledger_topic
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.said import codes, facts_in, of_code
from tests.tiers import ANSWER_S


def test_a_hanging_transaction_is_noted_and_what_lies_before_it_is_copied(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(20, partitions=2))
    hanging = producer(source_cluster, transactional_id=topic)
    hanging.init_transactions(ANSWER_S)
    hanging.begin_transaction()
    began = time.time()
    long_ago = int(began * 1000) - 3_600_000
    hanging.produce(topic, b"waits", partition=1, timestamp=long_ago)
    assert hanging.flush(ANSWER_S) == 0
    send(producer(source_cluster), topic, numbered(20, partitions=2))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 30)
    (note,) = of_code("held.by-transaction", report.plan.notes)
    assert (facts_in(note)["topic"], facts_in(note)["partition"], facts_in(note)["start"]) == (topic, 1, 10)
    empty, blocking_transactions = measure_lag(lab.flow)
    assert (empty.records, empty.seconds) == (0, 0.0)
    assert (blocking_transactions.position, blocking_transactions.source_end, blocking_transactions.records) == (
        10,
        21,
        11,
    )
    assert blocking_transactions.seconds is not None
    assert 3_600 <= blocking_transactions.seconds <= 3_601 + time.time() - began
    hanging.commit_transaction(ANSWER_S)
    report = lab.micro_run()
    assert (report.records, of_code("held.by-transaction", report.plan.notes)) == (11, [])
    assert lab.assert_equal() == 41


def test_a_transaction_that_hangs_on_the_ledger_is_named_by_plans_and_by_readiness(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(20, partitions=2))
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    assert lab.micro_run().state is RunState.SUCCESS
    ledger = ledger_topic(lab.alias)
    hanging = producer(target_cluster, transactional_id=f"hangs-{topic}")
    hanging.init_transactions(ANSWER_S)
    hanging.begin_transaction()
    hanging.produce(ledger, b"{}", key=b"[]", partition=0)
    assert hanging.flush(ANSWER_S) == 0
    with lab.runs() as runs:
        assert not [note for note in runs.preview().notes if ledger in note], "it is young"
    monkeypatch.setattr(blocking_transactions, "HANGING_MS", 0)
    send(producer(source_cluster), topic, numbered(20, partitions=2))
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 20)
    (note,) = [note for note in report.plan.notes if ledger in note]
    assert (codes([note]), facts_in(note)["writer"]) == (["held.ledger"], f"transactional id hangs-{topic}")
    ready = check_readiness(lab.flow, Rpo(), back=True, patience_s=ANSWER_S)
    assert [check.name for check in ready.failed] == ["ledger"]
    (writers,) = [check for check in ready.checks if check.name == "writers"]
    assert f"may write to {ledger}" in writers.message
    hanging.abort_transaction(ANSWER_S)
    with lab.runs() as runs:
        assert not [note for note in runs.preview().notes if ledger in note]
