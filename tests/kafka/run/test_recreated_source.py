"""A source topic that is deleted, created and filled again while a run copies it, on real brokers."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.model import Receipt, RefusalKind
from ferry.plan.options import RunOptions
from ferry.run.micro_run import local_origin
from tests.harness import (
    Lab,
    Message,
    create_topic,
    delete_topic,
    new_alias,
    producer,
    read_topic,
    send,
    wait_until,
)
from tests.tiers import ANSWER_S

PARTITIONS = 6
OLD, NEW = 2_000, 1_500
"""Records of each partition."""


def fill(cluster: RunningCluster, topic: str, name: str, records: int) -> None:
    """The same partitions again, with values that name the topic's first or second life."""
    messages = [
        Message(value=f"{name}-{partition}-{number}".encode().ljust(500), partition=partition)
        for partition in range(PARTITIONS)
        for number in range(records)
    ]
    send(producer(cluster, batch_num_messages=50), topic, messages)


def again(cluster: RunningCluster, topic: str) -> None:
    """Delete the topic, create it and fill it."""
    delete_topic(cluster, topic)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wait_until(lambda: topic not in admin.list_topics(timeout=ANSWER_S).topics, "the end of the deleted topic")
    create_topic(cluster, topic, PARTITIONS)
    fill(cluster, topic, "new", NEW)


def test_nothing_of_the_new_topic_comes_under_receipts_of_the_old_one(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    create_topic(source_cluster, topic, PARTITIONS)
    fill(source_cluster, topic, "old", OLD)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.throttle.bytes.per.second": "400000", "ferry.chunk.seconds": "1", "tasks.max": "1"},
    )
    with lab.runs() as runs:
        plan = runs.open_run("throttled", local_origin(), RunOptions())
        planned = {piece.source_topic_id for piece in plan.slices}
        attempt = runs.begin(plan, local_origin())
        (slot,) = plan.used_slots
        begun = threading.Event()

        def committed(_: list[Receipt]) -> None:
            if not begun.is_set():
                begun.set()
                remaking.start()

        remaking = threading.Thread(target=again, args=(source_cluster, topic))
        result = run_slot(runs.slot_task(plan, slot, attempt), lambda: False, committed)
        assert begun.is_set(), "the topic is made again while it is copied"
        remaking.join()
        kinds = {refusal.kind for refusal in result.refusals.values()}
        assert kinds <= {RefusalKind.TOPIC_RECREATED, RefusalKind.TOPIC_GONE}, result.refusals
        assert len(result.refusals) == PARTITIONS
    written = lab.receipts()
    assert {receipt.source_topic_id for receipt in written} == planned
    lives = Counter(
        (row[2] or b"").partition(b"-")[0]
        for rows in read_topic(target_cluster.bootstrap, lab.target_topic(topic)).values()
        for row in rows
    )
    assert set(lives) == {b"old"}, lives
    assert lives[b"old"] == sum(segment.count for receipt in written for segment in receipt.segments)

    report = replace(lab, settings={"ferry.guard.topic.recreated": "restart"}).micro_run()
    assert report.state is RunState.SUCCESS
    values = Counter(
        row[2] for rows in read_topic(target_cluster.bootstrap, lab.target_topic(topic)).values() for row in rows
    )
    assert sum(count for value, count in values.items() if (value or b"").startswith(b"new")) == PARTITIONS * NEW
    assert set(values.values()) == {1}, "no record of either is there twice"
