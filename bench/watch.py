"""When records arrive at the target, observed from outside: the end offsets of a topic are read again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from usage import Usage

LOOK_SECONDS = 0.1
QUIET_SECONDS = 3.0
"""A copy is complete when enough has arrived and nothing more did for this time (transaction markers count as
offsets)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A replicator observed from outside: until its first record is at the target, and from there to its last."""

    starting: Usage
    copying: Usage


def watch(
    bootstrap: str, topic: str, partitions: int, records: int, cpu: Callable[[], float], alive: Callable[[], bool]
) -> Arrival:
    """Read the end offsets until all `records` have arrived. Call it when the replicator has just been started.

    `cpu` returns the replicator's CPU-seconds so far.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    began = time.monotonic()
    first = last = (0.0, 0.0)
    seen = 0
    while seen < records or time.monotonic() - began - last[0] < QUIET_SECONDS:
        assert alive(), f"the replicator ended with {seen} of {records} records of {topic} copied"
        spent = cpu()
        # The first record counts when it is written, the last one when its transaction is committed, too.
        now = _end(admin, asked, IsolationLevel.READ_COMMITTED if seen else IsolationLevel.READ_UNCOMMITTED)
        if now > seen:
            last = time.monotonic() - began, cpu()
            # What arrived since the reading before counts as copied from then on.
            first = first if seen else (last[0] - LOOK_SECONDS, spent)
            seen = now
        time.sleep(LOOK_SECONDS)
    return Arrival(
        starting=Usage(wall=first[0], cpu=first[1]),
        copying=Usage(wall=last[0] - first[0], cpu=last[1] - first[1]),
    )


def _end(admin: AdminClient, asked: dict[TopicPartition, OffsetSpec], isolation: IsolationLevel) -> int:
    answers = admin.list_offsets(asked, isolation_level=isolation, request_timeout=10)
    total = 0
    for answer in answers.values():
        try:
            total += max(0, answer.result().offset)
        except KafkaException:  # the topic does not exist yet
            continue
    return total
