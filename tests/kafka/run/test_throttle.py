"""The rate of a flow on real brokers: two processes at once keep to it together.

That no task waits longer than the rate demands is shown by a clock that does not depend on the machine
(tests/pure/net/test_throttle.py).
"""

from __future__ import annotations

import os
import time

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.run.local import copy_all
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send

RATE = 1_200_000
RECORDS = 6_000
RECORD_BYTES = 1_000


def test_two_tasks_at_once_keep_to_the_rate_together(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(source_cluster, topic, 4)
    messages = numbered(RECORDS, partitions=4, size=RECORD_BYTES)
    send(producer(source_cluster, batch_num_messages=5), topic, messages)
    lab = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(topic,),
        settings={"ferry.throttle.bytes.per.second": str(RATE), "ferry.chunk.seconds": "2"},
    )
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with lab.runs() as runs:
        plan = runs.open_run("throttled", local_origin())
        began = time.time()
        ends = copy_all(runs, plan, runs.begin(plan, local_origin()))
        report = runs.report("throttled")
    assert report.state is RunState.SUCCESS
    chunks = [sorted((receipt.at_ms, receipt.bytes) for receipt in end.receipts) for end in ends]
    (first, first_last), (second, second_last) = ((slot[0][0], slot[-1][0]) for slot in chunks)
    assert first < second_last, "the tasks did not run together"
    assert second < first_last, "the tasks did not run together"
    written = 0
    for at_ms, size in sorted(chunk for slot in chunks for chunk in slot):
        written += size
        assert written <= RATE * (at_ms / 1000 - began), "all tasks together, from their start on"
    assert written == report.bytes
    assert all(sum(receipt.throttled.ferry for receipt in end.receipts) > 0 for end in ends), "the rate held back none"
    assert (report.throttled.source, report.throttled.target) == (0, 0)
    assert lab.assert_equal() == RECORDS
