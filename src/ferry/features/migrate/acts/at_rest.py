"""Whether another replicator is at rest: two that copy the same partitions copy every record twice.

The members of its group are certain. A worker of Kafka Connect stays in its group when a connector is stopped, so there
the connector's state counts. In addition, positions, heartbeats and ends of copies must not move for some time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import MALFORMED, BadInput, Refused, Unreachable
from ferry.features.migrate.rules.connect_offsets import (
    SOURCE_CONNECTOR,
    ConnectorOffsets,
    dedicated_group,
    dedicated_offsets_topic,
    dedicated_status_topic,
    parse_key,
)
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.kafka.fetch.whole_topic import read_topic, topic_ends
from ferry.kafka.groups.listing import describe_groups, list_groups, sees_all_groups
from ferry.model import NO_STATE, DescribedGroup, Fate, GroupKind, LedgerRecord, ListedGroup, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.wire.mirror_records import parse_heartbeat
from ferry.words import count_of

_BEATS = 3
"""How many heartbeats must be due before their absence shows something."""
_LEAST_S, _MOST_S = 3.0, 30.0
_EVERY_S = 0.5

_AT_REST = frozenset({"STOPPED", "DESTROYED"})
"""States of a connector without tasks (`AbstractStatus.State`, KIP-875). The tasks of a FAILED one may still run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm2Place:
    """The place in which a MirrorMaker 2 keeps its positions on the target, and how it is seen to be at rest.

    `group` is the group of its workers, and `status_topic` the topic with the states of connectors; None: not known.
    """

    offsets_topic: str
    connector: str
    group: str | None
    status_topic: str | None
    dedicated: bool

    @classmethod
    def of(
        cls,
        source_alias: str,
        *,
        offsets_topic: str | None = None,
        connector: str | None = None,
        group: str | None = None,
        status_topic: str | None = None,
    ) -> Mm2Place:
        """Use the names of a dedicated MirrorMaker 2 by default.

        With an offsets topic of another name it is on Kafka Connect.
        """
        dedicated = offsets_topic in (None, dedicated_offsets_topic(source_alias))
        return cls(
            offsets_topic=offsets_topic or dedicated_offsets_topic(source_alias),
            connector=connector or SOURCE_CONNECTOR,
            group=group or (dedicated_group(source_alias) if dedicated else None),
            status_topic=status_topic or (dedicated_status_topic(source_alias) if dedicated else None),
            dedicated=dedicated,
        )


def copies_of(flow: FlowConfig, facts: Facts) -> set[str]:
    """Return the existing target topics of the flow's source topics."""
    names = {flow.copy_of(name) for name in facts.source.topics}
    return names & facts.target.topics.keys()


def refuse_undecided(target: Cluster, place: Mm2Place, found: ConnectorOffsets) -> None:
    """Raise Refused while positions are in an open transaction."""
    if found.undecided:
        raise Refused(
            f"topic {place.offsets_topic} on cluster {target.alias} has {count_of(found.undecided, 'position')} of "
            f"{place.connector} in a transaction that is still open: wait until MirrorMaker 2's transaction.timeout.ms "
            "has passed, or end it with kafka-transactions.sh abort"
        )


async def refuse_members(cluster: Cluster, group: str, what: str, remedy: str) -> None:
    """Raise Refused while `group` of `what` has members, or if that is not known."""
    found = await _with_members(cluster, group, what)
    if found is None:
        return
    who = ", ".join(f"{member.client_id} at {member.host.lstrip('/')}" for member in found.members[:3])
    raise Refused(
        f"{what} still runs: group {group} on cluster {cluster.alias} is {found.state}"
        + (f" with {count_of(len(found.members), 'member')}, {who}" if found.members else "")
        + f": {remedy}"
    )


async def _with_members(cluster: Cluster, group: str, what: str) -> DescribedGroup | None:
    """Return `group` of `what`; None if it has no members. Raises Refused if that is not known.

    A list leaves out groups that the login may not describe, without an error. So a group that is not listed is asked
    for by its name, unless the login sees all groups.
    """
    listed = await list_groups(cluster)
    listed.refuse_silent(cluster.alias)
    known = listed.groups.get(group)
    if known is None and await sees_all_groups(cluster):
        return None
    known = known or ListedGroup(name=group, kind=GroupKind.UNKNOWN, state=NO_STATE, protocol_type="")
    if known.state != NO_STATE and not known.is_active:
        return None
    described = await describe_groups(cluster, [known])
    found = described.groups.get(group)
    if not known.is_active:
        if found is None:
            raise Refused(f"whether {what} still runs is not known: {described.failed[group]}")
        known = replace(known, state=found.state)
    if not known.is_active:
        return None
    return DescribedGroup(
        name=group, kind=known.kind, state=known.state, members=() if found is None else found.members
    )


async def refuse_running_mm2(target: Cluster, place: Mm2Place) -> list[str]:
    """Raise Refused while MirrorMaker 2 runs, by its group or its state.

    Return notes about what could not be checked.
    """
    notes = []
    if place.dedicated and place.group is not None:
        await refuse_members(
            target,
            place.group,
            "MirrorMaker 2",
            "stop it with SIGTERM, which commits its positions; one that was killed leaves its group when its session "
            "times out (10 s unless set)",
        )
    elif not await _are_workers_gone(target, place):
        if place.status_topic is None:
            notes.append(
                "whether the connector is stopped was seen only by what moves: name the workers' --status-topic, or "
                "their --worker-group when they are all down"
            )
        else:
            _refuse_state(place, await _connector_state(target, place))
    return notes


async def _are_workers_gone(target: Cluster, place: Mm2Place) -> bool:
    """Return whether no worker of Kafka Connect is running.

    Where that is not known, the connector's state counts. Without a topic for that state, the reason is raised.
    """
    if place.group is None:
        return False
    try:
        return await _with_members(target, place.group, "Kafka Connect") is None
    except (Refused, Unreachable):
        if place.status_topic is None:
            raise
        return False


async def _connector_state(target: Cluster, place: Mm2Place) -> str | None:
    """Return the connector's last state; None if it was deleted. Raises BadInput if the topic does not have it."""
    records = await read_topic(target, place.status_topic or "")
    if records is None:
        raise BadInput(
            f"there is no topic {place.status_topic} on cluster {target.alias}: name the workers' "
            "status.storage.topic with --status-topic"
        )
    found: list[LedgerRecord] = [
        record for _, record in records if record.key == f"status-connector-{place.connector}".encode()
    ]
    if not found:
        raise BadInput(
            f"topic {place.status_topic} on cluster {target.alias} knows no connector {place.connector}: correct "
            "--status-topic or --connector"
        )
    last = found[-1].value
    if last is None:
        return None
    try:
        return str(json.loads(last)["state"])
    except MALFORMED:
        raise BadInput(
            f"topic {place.status_topic} holds {last[:60]!r} as the state of connector {place.connector}, which is "
            "not Kafka Connect's: name the workers' status.storage.topic with --status-topic"
        ) from None


def _refuse_state(place: Mm2Place, state: str | None) -> None:
    if state is not None and state not in _AT_REST:
        raise Refused(
            f"connector {place.connector} is {state} by {place.status_topic}: stop it (PUT "
            f"/connectors/{place.connector}/stop; before Kafka 3.5 delete it, its offsets stay); a paused one may "
            "continue at any time"
        )


async def refuse_moving_mm2(flow: FlowConfig, target: Cluster, place: Mm2Place, copies: Collection[str]) -> None:
    """Raise Refused as soon as anything of MirrorMaker 2 moves.

    It waits as long as _BEATS heartbeats take, but at least _LEAST_S and at most _MOST_S seconds.
    """
    beat = flow.mirror.emit_heartbeats.interval_s or 1
    seconds = min(_MOST_S, max(_LEAST_S, _BEATS * beat))
    heartbeats = flow.topics.policy.heartbeats_topic()
    places = await _ends_of(target, copies)
    offsets = await topic_ends(target, place.offsets_topic) or {}
    beats = await topic_ends(target, heartbeats) or {}
    until = time.monotonic() + seconds
    while True:
        last = time.monotonic() >= until
        moved = await _moved_positions(flow, target, place, offsets)
        moved = moved or await _moved_heartbeats(flow, target, heartbeats, beats)
        moved = moved or _grown(places, await _ends_of(target, copies))
        if moved is not None:
            raise Refused(
                f"MirrorMaker 2 still runs, because {moved} within {seconds:g} s: stop it with SIGTERM, which commits "
                "its positions"
            )
        if last:
            return
        await target.loop.sleep(_EVERY_S)


async def _moved_positions(
    flow: FlowConfig, target: Cluster, place: Mm2Place, since: Mapping[TopicPartition, int]
) -> str | None:
    for _, record in await read_topic(target, place.offsets_topic, start=dict(since)) or ():
        parsed = parse_key(record.key)
        if record.fate is Fate.ABORTED or parsed is None or parsed[1] is None:
            continue
        if (parsed[0], parsed[2]) == (place.connector, flow.flow.source):
            return f"its position of {parsed[1]} in {place.offsets_topic} was written"
    return None


async def _moved_heartbeats(
    flow: FlowConfig, target: Cluster, topic: str, since: Mapping[TopicPartition, int]
) -> str | None:
    if not since:
        return None
    for _, record in await read_topic(target, topic, start=dict(since)) or ():
        try:
            beat = parse_heartbeat(record.key, record.value)
        except BadInput:  # a record of another writer in that topic shows nothing about MirrorMaker 2
            continue
        if (beat.source_alias, beat.target_alias) == (flow.flow.source, flow.flow.target):
            return f"a heartbeat of {flow.flow} came to {topic}"
    return None


async def _ends_of(target: Cluster, topics: Collection[str]) -> dict[TopicPartition, int]:
    found = await target.refresh(topics) if topics else {}
    places = [
        TopicPartition(topic=name, partition=number) for name, info in found.items() for number in info.partitions
    ]
    return (await listed_offsets(target, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)).found


def _grown(before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int]) -> str | None:
    grown = sorted(place for place, end in now.items() if end > before.get(place, 0))
    return f"{grown[0]} grew from offset {before.get(grown[0], 0)} to {now[grown[0]]}" if grown else None
