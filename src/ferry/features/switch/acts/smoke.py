"""A smoke test of the new cluster: an application writes records, and they are read; moved offsets are read, too."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused, Retryable, Unreachable
from ferry.features.switch.acts.application import first_record_of, write_as_application
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.moving import moved_offsets
from ferry.kafka.admin.topics import NewTopic, create_topic, delete_topics
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.whole_topic import read_topic
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.kafka.librdkafka import librdkafka_name
from ferry.kafka.produce.appending import Appender
from ferry.lane.connections import TargetConnection
from ferry.model import Record, TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState
from ferry.words import count_of

RECORDS = 10
_VALUES = tuple(f"{number}".encode() for number in range(RECORDS))


def smoke_topic(switch: str) -> str:
    """Return the name of the scratch topic. No policy copies it, because it begins like Kafka's own topics."""
    return f"__ferry-smoke.{switch}"


def smoke_test(sides: Sides, state: SwitchState, *, patience_s: float) -> Evidence:
    """Test the new cluster, and delete the scratch topic afterwards. Raises Refused if a test fails.

    librdkafka writes, as an application does, and its consumer of a scratch group reads. Where it cannot, as with
    Kerberos, Ferry writes or reads, and the reason is a fact. When the consumer has its first record is measured.
    """
    if not state.switch.options.smoke:
        return Evidence(sentence="left out", facts={"smoke": False})
    wanted = moved_offsets(state.rows(Step.GROUPS))
    topic = smoke_topic(state.switch.id)
    place = TopicPartition(topic=topic, partition=0)
    with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
        try:
            connection.run(partial(_create, connection.target, place))
            writer = _write(sides, connection, place, patience_s=patience_s)
            count = connection.run(partial(_groups, connection.target, wanted))
            tried_ms = wall_ms()
            expected = [(writer.mark, value) for value in _VALUES]
            first = first_record_of(
                sides.via, connection, state.switch.id, {place: 0}, patience_s=patience_s, wanted=expected
            )
            came = _values(first.records, writer.mark) == _VALUES
            if not came:  # Ferry's own reader decides whether the cluster is to blame
                connection.run(partial(_read_back, connection.target, topic, writer.mark))
        finally:
            connection.run(partial(_remove, connection.target, topic))
    return Evidence(
        sentence=f"{RECORDS} records went to {sides.new} and came back, offsets of "
        f"{count_of(len(wanted), 'group')} can be read{_by_ferry(writer.why, first.why)}",
        facts={
            "smoke": True,
            "records": RECORDS,
            "written_by": writer.name,
            "written_why": writer.why,
            "read_by": librdkafka_name() if came else "ferry",
            "read_why": first.why,
            "groups": len(wanted),
            "offsets": count,
            "tried_ms": tried_ms,
            "first_record_ms": first.at_ms,
            "first_record_why": "" if first.at_ms is not None else first.why,
        },
    )


class _Writer(NamedTuple):
    """Which client wrote the records, and the key that they have; `why` says why it was not librdkafka."""

    name: str
    mark: bytes
    why: str = ""


def _write(sides: Sides, connection: TargetConnection, place: TopicPartition, *, patience_s: float) -> _Writer:
    mark = _new_mark()
    records = [(mark, value) for value in _VALUES]
    try:
        return _Writer(write_as_application(sides.via, place, records, patience_s=patience_s), mark)
    except (BadInput, Refused, Unreachable) as error:
        why = str(error)
    mark = _new_mark()  # some of the others may be there
    ours = [Record(key=mark, value=value) for value in _VALUES]
    connection.run(lambda: Appender(connection.target, place, "topic").append(ours))
    return _Writer("ferry", mark, why)


def _new_mark() -> bytes:
    return secrets.token_hex(8).encode()


def _by_ferry(wrote: str, read: str) -> str:
    """Return what Ferry did itself, and why librdkafka could not, as the end of a sentence; empty: nothing."""
    if wrote == read:
        return f"; Ferry wrote and read them ({wrote})" if wrote else ""
    return "".join(f"; Ferry {did} them ({why})" for did, why in (("wrote", wrote), ("read", read)) if why)


async def _create(target: Cluster, place: TopicPartition) -> None:
    await create_topic(target, NewTopic(name=place.topic, partitions=1, replication_factor=-1, configs={}))

    async def visible() -> None:
        if place.topic not in await target.refresh([place.topic]):
            raise Retryable(f"topic {place.topic} is not yet visible on cluster {target.alias}")
        target.leader(place)

    await target.retrying(visible)


def _values(records: Iterable[tuple[bytes | None, bytes | None]], mark: bytes) -> tuple[bytes | None, ...]:
    """Return the values of the records with this key, in order; one may be there twice."""
    return tuple(dict.fromkeys(value for key, value in records if key == mark))


async def _read_back(target: Cluster, topic: str, mark: bytes) -> None:
    """Raise Refused unless all records with this key are there, in order."""
    found = _values([(record.key, record.value) for _, record in await read_topic(target, topic) or ()], mark)
    if found != _VALUES:
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
