"""The rate of a flow on real brokers: two processes at once keep to it together, and quotas of brokers are told."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field

import pytest

from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, list_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.ledger.report import RunState
from ferry.model import Plan, TopicPartition
from ferry.run.local import copy_all
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, new_alias, numbered, on_cluster, producer, send

RATE = 1_200_000
RECORDS = 9_600
RECORD_BYTES = 1_000


@dataclass
class Watch:
    """The ends of the target's partitions over time, as its broker tells them."""

    cluster: RunningCluster
    plan: Plan
    samples: list[tuple[float, dict[TopicPartition, int]]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def follow(self) -> None:
        """Look ten times a second until it is over."""
        wanted = {piece.target: LATEST for piece in self.plan.slices}

        async def look(client: Cluster) -> None:
            while not self.over.is_set():
                ends = await list_offsets(client, wanted, isolation=READ_UNCOMMITTED)
                self.samples.append((time.monotonic(), ends))
                await client.loop.sleep(0.1)

        on_cluster(self.cluster, look)

    def rate(self, bytes_per_offset: float) -> tuple[float, float]:
        """Bytes a second while all slots were at work, and for how many seconds they were."""
        full = {piece.target: piece.offsets for piece in self.plan.slices}
        slots = [[piece.target for piece in self.plan.of_slot(slot)] for slot in self.plan.used_slots]

        def at_work(ends: dict[TopicPartition, int]) -> bool:
            written = [(sum(ends[place] for place in places), sum(full[place] for place in places)) for places in slots]
            return all(0 < done < whole for done, whole in written)

        during = [(at, sum(ends.values())) for at, ends in self.samples if at_work(ends)]
        (began, first), (ended, last) = during[0], during[-1]
        return (last - first) * bytes_per_offset / (ended - began), ended - began


def test_two_tasks_at_once_keep_within_a_tenth_of_the_rate(
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
        watch = Watch(cluster=target_cluster, plan=plan)
        follower = threading.Thread(target=watch.follow)
        follower.start()
        began = time.time()
        try:
            ends = copy_all(runs, plan, runs.begin(plan, local_origin()))
        finally:
            watch.over.set()
            follower.join()
        report = runs.report("throttled")
    assert report.state is RunState.SUCCESS
    assert [bool(end.receipts) for end in ends] == [True, True]
    last = max(receipt.at_ms for receipt in report.receipts) / 1000
    assert report.bytes <= RATE * (last - began), "all tasks together, from their start on"
    measured, seconds = watch.rate(report.bytes / RECORDS)
    assert seconds > 3, "the tasks were hardly at work together"
    assert 0.9 * RATE <= measured <= 1.1 * RATE
    assert report.throttled.ferry > 1_000 * seconds
    assert (report.throttled.source, report.throttled.target) == (0, 0)
    assert lab.assert_equal() == RECORDS
