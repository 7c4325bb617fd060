"""Why something is not copied because of the flow: what it names, and who owns the copy."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.model import RefusalKind

K = RefusalKind

_OR_WAIT = "or wait for such topics with ferry.guard.topics.none = skip"

FLOW: Mapping[str, Entry] = {
    "topics.none.name": Entry(
        K.TOPICS_NONE,
        "topics names {topic}, but cluster {cluster} does not have it or does not show it to this login",
        f"correct it, create the topic, or grant DESCRIBE on it; {_OR_WAIT}",
    ),
    "topics.none.one": Entry(  # one of several names: only a note
        K.TOPICS_NONE,
        "topics names {topic}, but cluster {cluster} does not have it or does not show it to this login",
        "correct it, create the topic, or grant DESCRIBE on it",
    ),
    "topics.none.empty": Entry(
        K.TOPICS_NONE,
        "flow {flow} copies nothing, because topics is empty",
        f"name the topics to copy; {_OR_WAIT}",
    ),
    "topics.none.excluded": Entry(
        K.TOPICS_NONE,
        "topics.exclude excludes every topic of cluster {cluster} that topics includes ({some})",
        f"correct one of the two; {_OR_WAIT}",
    ),
    "topics.none.shown": Entry(
        K.TOPICS_NONE,
        "cluster {cluster} shows no topic to this login that flow {flow} could copy",
        f"create the topics, or grant DESCRIBE on them; {_OR_WAIT}",
    ),
    "topics.none.matched": Entry(
        K.TOPICS_NONE,
        "topics ({patterns}) matches none of the {shown:count topic} that cluster {cluster} shows",
        "correct it (ferry plan --explain NAME explains one topic), or grant DESCRIBE on the topics; " + _OR_WAIT,
    ),
    "name.too-long": Entry(
        K.NAME_TOO_LONG,
        "target name {target}... of topic {cut}... has {length} characters, but Kafka allows {most}",
        "{shorter}",
    ),
    "name.invalid": Entry(
        K.INVALID_NAME,
        "{by} names topic {topic} {target!r} on the target, but that {why}",
        "correct {it}, or exclude the topic",
    ),
    "name.clash": Entry(
        K.NAME_CLASH,
        "target topic {target} would hold both {other} and {topic}",
        "exclude one of them, or correct {by}",
    ),
    "way.loop": Entry(
        K.LOOP,
        "topic {topic} would come back to cluster {cluster} and be copied again (by {flows})",
        "exclude it from one of these flows, for example in {last}.topics.exclude, or use DefaultReplicationPolicy",
    ),
    "way.loop.opposite": Entry(
        K.LOOP,
        "topic {topic} would come back to cluster {cluster} and be copied again (by {flows})",
        "pause {last} until a switch (ferry pause '{last}' --reason standby), or exclude it from one of these flows, "
        "for example in {last}.topics.exclude, or use DefaultReplicationPolicy",
    ),
    "way.returning": Entry(
        K.LOOP,
        "offsets {start} to {last} of {source} came from cluster {cluster}, and would go back there",
        "disable the flow {back}, and copy the records after them in a new lane with {flow}.ferry.start = "
        "{topic}:{partition}:{behind}",
    ),
    "way.no-receipt": Entry(
        K.LOOP,
        "offsets {start} to {last} of {source} came from cluster {cluster} with identical offsets and have no receipt "
        "yet, so they would go back there",
        "wait until the run of flow {writer} has ended, or run it again if it was killed",
    ),
    "way.unread": Entry(
        K.NO_LEADER,
        "it is not known whether flow {writer} wrote offsets {start} to {last} of {source} with identical offsets, "
        "because {why}",
        "run again when they can be read",
    ),
    "owned.by-lane": Entry(
        K.OWNED,
        "target topic {target} belongs to lane {owner} of this flow",
        "copy it with ferry.lane = {owner}, or exclude it here (topics.exclude)",
    ),
    "owned.no-live-lane": Entry(
        K.OWNED,
        "no live lane has target topic {target} yet, so nothing is there to append to",
        "copy the window with --into-live, which keeps the order",
    ),
    "owned.by-flow": Entry(
        K.OWNED,
        "target topic {target} belongs to the flow of ledger {ledger}",
        "give it another name by the replication policy, exclude the topic, or merge both flows with "
        "ferry.merge.topics",
    ),
    "owned.not-shared": Entry(
        K.OWNED,
        "target topic {target} belongs to the flow of ledger {ledger} alone",
        "name the topic in that flow's ferry.merge.topics, too, and run that flow once",
    ),
}
