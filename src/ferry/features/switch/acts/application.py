"""What an application of the new cluster sees: it writes records, and a consumer of a group has its first one.

The application is librdkafka. Its group is its own and is deleted afterwards. It commits no offset, and joins no group
of an application. A measurement that fails changes nothing: its reason takes the place of the figure.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.librdkafka import flow_librdkafka_options
from ferry.errors import FerryError, Refused
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.coordinators import NotPermittedGroup
from ferry.kafka.groups.removal import delete_group
from ferry.kafka.librdkafka import FirstRecord, first_record, librdkafka_name, write_records
from ferry.lane.connections import TargetConnection
from ferry.model import TopicPartition

MOST_SECONDS = 30.0
"""How long a record is waited for; brokers let a new group wait for 3 s by default
(`group.initial.rebalance.delay.ms`)."""


LEAVING_SECONDS = 10.0
"""How long a member that has left may still be in its group."""


def scratch_group(name: str) -> str:
    """Return the group with which a switch or a drill measures. No flow translates it, because its name is Ferry's."""
    return f"ferry.smoke.{name}"


def write_as_application(
    flow: FlowConfig, place: TopicPartition, records: Sequence[tuple[bytes, bytes]], *, patience_s: float
) -> str:
    """Write `(key, value)` to a partition of the flow's target; return the name of the library that did.

    Raises BadInput, Refused for a property that librdkafka does not have, Unreachable when not all are acknowledged.
    """
    options = flow_librdkafka_options(flow, "target")
    write_records(flow.flow.target, options, place, records, seconds=min(patience_s, MOST_SECONDS))
    return librdkafka_name()


def first_record_of(
    flow: FlowConfig,
    connection: TargetConnection,
    name: str,
    starts: Mapping[TopicPartition, int],
    *,
    patience_s: float,
    wanted: Collection[tuple[bytes, bytes]] = (),
) -> FirstRecord:
    """Let a consumer join a group on the flow's target and read from these offsets, until it has a record.

    With `wanted`, a key and value each, it reads until it has had all of these.
    """
    group = scratch_group(name)
    try:
        options = flow_librdkafka_options(flow, "target")
        seconds = min(patience_s, MOST_SECONDS)
        found = first_record(flow.flow.target, options, group, starts, seconds=seconds, wanted=wanted)
    except FerryError as error:
        return FirstRecord(None, str(error))
    with suppress(FerryError):  # Kafka deletes a group without members and offsets later
        connection.run(lambda: delete_when_left(connection.target, group))
    return found


async def delete_when_left(cluster: Cluster, group: str) -> None:
    """Delete a group whose last member has just said that it leaves: the broker may not have taken that in yet.

    Raises Refused if it has members for `LEAVING_SECONDS`, or at once without DELETE on it; Unreachable.
    """
    until = time.monotonic() + LEAVING_SECONDS
    while True:
        try:
            return await delete_group(cluster, group)
        except NotPermittedGroup:
            raise
        except Refused:
            if time.monotonic() > until:
                raise
        await cluster.loop.sleep(0.2)
