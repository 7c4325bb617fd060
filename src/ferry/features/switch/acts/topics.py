"""The topics on the new cluster that producers continue in: created like the copies, with the end of each partition."""

from __future__ import annotations

from functools import partial

from ferry.config.flow.parts import DEFAULT_REPLICATION_FACTOR
from ferry.errors import Refused, Retryable
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.names import Names, names_of
from ferry.features.switch.rules.partition_state import last_seen_ms, parse_standings
from ferry.kafka.admin.topic_settings import topic_settings
from ferry.kafka.admin.topics import NewTopic, create_topics
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, list_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import TargetConnection
from ferry.model import TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState, Verb
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from ferry.words import agreeing, count_of, several


def live_topics(sides: Sides, state: SwitchState, still_mine: StillMine, *, patience_s: float) -> Evidence:
    """Create the topics that are missing.

    The rows are the ends of their partitions before producers come: groups begin there. In a failover producers may
    have come before the switch. What was written since the old cluster was last seen is theirs, and groups `begin`
    before it. Raises Refused if a topic may not be created.
    """
    found = parse_standings(state.rows(Step.STOP) or state.rows(Step.FREEZE))
    names = {
        one.source.topic: made
        for one in found
        if (made := names_of(sides.via, one.source.topic, sides.clusters)) is not None
    }
    wanted = {made.live: made for made in names.values() if not made.keeps_name}
    seen_ms = last_seen_ms(found) if state.switch.verb is Verb.FAILOVER else None
    with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
        created, ends = connection.run(partial(_live, sides, connection.target, wanted, still_mine))
        begins = connection.run(partial(_begins, connection.target, ends, seen_ms))
    kept = len(names) - len(wanted)
    parts = [f"{count_of(len(created), 'topic')} created" + (f" ({several(sorted(created))})" if created else "")]
    parts.append(agreeing(len(wanted) - len(created), "was there", "were there"))
    if kept:
        parts.append(agreeing(kept, "keeps its name", "keep their names"))
    early = sum(1 for place, end in ends.items() if begins[place] < end)
    if early:
        parts.append(
            f"producers may have come to {count_of(early, 'partition')} before: groups begin before what they wrote"
        )
    return Evidence(
        sentence=", ".join(parts),
        facts={"created": sorted(created)},
        rows=tuple(
            {
                "topic": place.topic,
                "partition": place.partition,
                "copy": wanted[place.topic].copy,
                "begin": begins[place],
                "end": end,
            }
            for place, end in sorted(ends.items())
        ),
    )


async def _live(
    sides: Sides, target: Cluster, wanted: dict[str, Names], still_mine: StillMine
) -> tuple[list[str], dict[TopicPartition, int]]:
    there = await target.refresh({*wanted, *(made.copy for made in wanted.values())}) if wanted else {}
    missing = [made for live, made in wanted.items() if live not in there and made.copy in there]
    settings = await topic_settings(target, [made.copy for made in missing]) if missing else None
    new = [
        NewTopic(
            name=made.live,
            partitions=len(there[made.copy].partitions),
            replication_factor=max(
                (len(part.replicas) for part in there[made.copy].partitions.values()),
                default=DEFAULT_REPLICATION_FACTOR,
            ),
            configs=dict(settings.found[made.copy].own) if settings and made.copy in settings.found else {},
        )
        for made in missing
    ]
    if new:
        still_mine()
    for error in (await create_topics(target, new)).values():
        raise error

    async def all_there() -> None:
        shown = await target.refresh(set(wanted)) if wanted else {}
        absent = sorted(one.name for one in new if one.name not in shown)
        if absent:
            raise Retryable(f"topic {absent[0]} is not yet visible on cluster {target.alias}")
        for live, info in shown.items():
            short = (
                len(info.partitions) < len(there[wanted[live].copy].partitions) if wanted[live].copy in there else False
            )
            if short:
                raise Refused(
                    f"topic {live} on cluster {target.alias} has {len(info.partitions)} partitions, its copy "
                    f"{wanted[live].copy} has {len(there[wanted[live].copy].partitions)}: keys would go to other "
                    "partitions; add partitions to it, then continue"
                )

    await target.retrying(all_there)
    places = [
        TopicPartition(topic=live, partition=number)
        for live in wanted
        if live in target.topics
        for number in target.topics[live].partitions
    ]
    ends = await list_offsets(target, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED) if places else {}
    return [one.name for one in new], ends


async def _begins(target: Cluster, ends: dict[TopicPartition, int], seen_ms: int | None) -> dict[TopicPartition, int]:
    """Return where groups begin.

    That is at the ends, or at the first record since the old cluster was last seen, by the clocks of producers.
    """
    if seen_ms is None or not ends:
        return ends
    since = dict.fromkeys(ends, max(0, seen_ms - MAX_SKEW_MS))
    listed = await list_offsets(target, since, isolation=READ_UNCOMMITTED)
    return {place: min(end, found) if (found := listed.get(place, -1)) >= 0 else end for place, end in ends.items()}
