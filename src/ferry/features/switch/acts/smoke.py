"""A smoke test of the new cluster: write records and read them again, and read the moved groups' offsets."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from functools import partial

from ferry.clock import wall_ms
from ferry.errors import Refused, Retryable
from ferry.features.switch.acts.application import first_record_of
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.moving import moved_offsets
from ferry.kafka.admin.topics import NewTopic, create_topic, delete_topics
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.whole_topic import read_topic
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.kafka.produce.appending import Appender
from ferry.lane.connections import TargetConnection
from ferry.model import Record, TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState
from ferry.words import count_of

RECORDS = 10


def smoke_topic(switch: str) -> str:
    """Return the name of the scratch topic. No policy copies it, because it begins like Kafka's own topics."""
    return f"__ferry-smoke.{switch}"


def smoke_test(sides: Sides, state: SwitchState, *, patience_s: float) -> Evidence:
    """Test the new cluster, and delete the scratch topic afterwards. Raises Refused if a test fails.

    Then a consumer of a scratch group reads the topic: when it has its first record is measured, not tested.
    """
    if not state.switch.options.smoke:
        return Evidence(sentence="left out", facts={"smoke": False})
    wanted = moved_offsets(state.rows(Step.GROUPS))
    topic = smoke_topic(state.switch.id)
    with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
        try:
            connection.run(partial(_round_trip, connection.target, topic))
            count = connection.run(partial(_groups, connection.target, wanted))
            tried_ms = wall_ms()
            starts = {TopicPartition(topic=topic, partition=0): 0}
            first = first_record_of(sides.via, connection, state.switch.id, starts, patience_s=patience_s)
        finally:
            connection.run(partial(_remove, connection.target, topic))
    return Evidence(
        sentence=f"{RECORDS} records went to {sides.new} and came back, offsets of "
        f"{count_of(len(wanted), 'group')} can be read",
        facts={
            "smoke": True,
            "records": RECORDS,
            "groups": len(wanted),
            "offsets": count,
            "tried_ms": tried_ms,
            "first_record_ms": first.at_ms,
            "first_record_why": first.why,
        },
    )


async def _round_trip(target: Cluster, topic: str) -> None:
    await create_topic(target, NewTopic(name=topic, partitions=1, replication_factor=-1, configs={}))
    place = TopicPartition(topic=topic, partition=0)

    async def visible() -> None:
        if topic not in await target.refresh([topic]):
            raise Retryable(f"topic {topic} is not yet visible on cluster {target.alias}")
        target.leader(place)

    await target.retrying(visible)
    mark = secrets.token_hex(8).encode()
    await Appender(target, place, "topic").append(
        [Record(key=mark, value=f"{number}".encode()) for number in range(RECORDS)]
    )
    found = [record for _, record in await read_topic(target, topic) or () if record.key == mark]
    if [record.value for record in found] != [f"{number}".encode() for number in range(RECORDS)]:
        raise Refused(
            f"of {RECORDS} records written to {topic} on cluster {target.alias} {len(found)} came back: look at "
            "its brokers before clients come"
        )


async def _remove(target: Cluster, topic: str) -> None:
    info = target.topics.get(topic)
    if info is not None:
        for error in (await delete_topics(target, {topic: info.topic_id})).values():
            raise error


async def _groups(target: Cluster, wanted: Mapping[str, Collection[TopicPartition]]) -> int:
    read = await fetch_offsets(target, wanted, stable=False)
    for error in read.failed.values():
        raise error
    missing = sorted(group for group, places in wanted.items() if set(places) - read.found.get(group, {}).keys())
    if missing:
        raise Refused(
            f"group {missing[0]} lacks offsets on cluster {target.alias} that were committed there: look at "
            "offsets.retention.minutes, and at who deletes groups"
        )
    return sum(len(places) for places in read.found.values())
