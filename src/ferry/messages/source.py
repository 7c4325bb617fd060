"""Why something is not copied because of the source."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.messages.phrases import ANEW, BROKERS, UNCLEAN
from ferry.model import RefusalKind

K = RefusalKind

_COMPARE = (
    f"compare both sides, then {ANEW}; or copy the new records after the old ones with ferry.guard.source.truncated = "
    "restart"
)
_SEEN_LATE = (
    "raise delete.retention.ms at the source above the time between two runs and the time of a first copy, otherwise "
    "the next run is refused, too; then continue with ferry.guard.tombstones.passed = skip, or"
)
_RETENTION = f"raise retention at the source, and continue there with ferry.guard.retention.passed = skip; or {ANEW}"

_PLAN_AGAIN = "plan again, and the plan shows what to do"
_DELETED = "deleted after the run was planned and before it was copied"
_RAISE = "raise retention at the source, and plan again; the plan shows what to do"

SOURCE: Mapping[str, Entry] = {
    "source.no-leader": Entry(K.NO_LEADER, "source {source} has no leader", BROKERS),
    "source.unserved": Entry(None, "source {source} is not copied, {why}; the next run copies it"),
    "source.recreated": Entry(
        K.TOPIC_RECREATED,
        "source topic {topic} was deleted and created again after {end} offsets of partition {partition} were copied "
        "(topic id {then}, now {now})",
        f"{ANEW}; or copy it after the old records with ferry.guard.topic.recreated = restart",
    ),
    "source.recreated.fewer": Entry(
        K.TOPIC_RECREATED,
        "source {source} was copied up to offset {end}, but topic {topic} now has {partitions:count partition}",
        f"it was deleted and created again; {ANEW}",
    ),
    "source.recreated.dealt": Entry(
        K.TOPIC_RECREATED,
        "source topic {topic} was deleted and created again since it was copied to {target} (its id is {now})",
        ANEW,
    ),
    "source.recreated.dealt.fewer": Entry(
        K.TOPIC_RECREATED,
        "source topic {topic} was deleted and created again since it was copied to {target} (it has "
        "{partitions:count partition}, {read} were read before)",
        ANEW,
    ),
    "source.diverged": Entry(
        K.SOURCE_TRUNCATED,
        f"source {{source}} was copied up to offset {{end}}, but its log was since truncated to {{cut}} (leader epoch "
        f"{{epoch}} ends there; {UNCLEAN})",
        _COMPARE,
    ),
    "source.shorter": Entry(
        K.SOURCE_TRUNCATED,
        "source {source} ends at offset {log_end} but was copied up to {end}",
        f"its log was truncated ({UNCLEAN}); {_COMPARE}",
    ),
    "source.truncated.dealt": Entry(
        K.SOURCE_TRUNCATED,
        f"source {{source}} was copied up to offset {{end}}, but its log was since truncated to {{cut}} ({UNCLEAN})",
        f"compare both sides, then {ANEW}",
    ),
    "source.truncated.before": Entry(
        K.SOURCE_TRUNCATED,
        f"{{source}} on cluster {{cluster}} ended at offset {{end}} or later before it was read; its log was "
        f"meanwhile truncated to {{cut}} (leader epoch {{epoch}} ends there; {UNCLEAN})",
        "nothing more of it was written; run again",
    ),
    "source.truncated.read": Entry(
        K.SOURCE_TRUNCATED,
        f"{{source}} on cluster {{cluster}} was read up to offset {{end}}, but its log was since truncated to {{cut}} "
        f"(leader epoch {{epoch}} ends there; {UNCLEAN})",
        _PLAN_AGAIN,
    ),
    "source.shorter.since-plan": Entry(
        K.SOURCE_TRUNCATED,
        "{source} on cluster {cluster} ends at offset {log_end} by now, though {start} to {last} were there when the "
        f"run was planned: its log was truncated ({UNCLEAN})",
        _PLAN_AGAIN,
    ),
    "source.retention-passed": Entry(
        K.RETENTION_PASSED,
        "source {source} begins at offset {log_start}, but records {start} to {last} were deleted before they were "
        "copied",
        _RETENTION,
    ),
    "source.retention-passed.one": Entry(
        K.RETENTION_PASSED,
        "source {source} begins at offset {log_start}, but record {start} was deleted before it was copied",
        _RETENTION,
    ),
    "source.retention-passed.since-plan": Entry(
        K.RETENTION_PASSED,
        f"{{source}} on cluster {{cluster}} now begins at offset {{log_start}}: offsets {{start}} to {{last}} were "
        f"{_DELETED}",
        _RAISE,
    ),
    "source.retention-passed.since-plan.one": Entry(
        K.RETENTION_PASSED,
        f"{{source}} on cluster {{cluster}} now begins at offset {{log_start}}: offset {{start}} was {_DELETED}",
        _RAISE,
    ),
    "source.tombstones-passed": Entry(
        K.TOMBSTONES_PASSED,
        "compacted source {source} was last read to its end before {read_ms:time}, longer ago than its "
        "delete.retention.ms of {retention_ms} allows; keys that were deleted since may remain on the target",
        f"{_SEEN_LATE} delete the copy and copy it again with ferry.guard.target.changed = restart",
    ),
    "source.tombstones-passed.dealt": Entry(
        K.TOMBSTONES_PASSED,
        "compacted source {source} was last read to its end before {read_ms:time}, longer ago than its "
        "delete.retention.ms of {retention_ms} allows; keys that were deleted since may remain on the target",
        f"{_SEEN_LATE} {ANEW}",
    ),
    "source.cluster-changed": Entry(
        K.CLUSTER_CHANGED,
        "the source alias {alias} now leads to cluster {now}, but the ledger was written from {then}",
        "correct the bootstrap servers, or use a new alias; or copy the other cluster's topics after the old records "
        "with ferry.guard.cluster.changed = restart",
    ),
    "source.cluster-changed.dealt": Entry(
        K.CLUSTER_CHANGED,
        "topic {topic} was repartitioned into {target} from another cluster than {alias} leads to now, and cannot "
        "continue from this one",
        ANEW,
    ),
    "source.gone": Entry(
        K.TOPIC_GONE,
        "source topic {topic}, copied before in {partitions:count partition}, is no longer on cluster {cluster}, or is "
        "hidden from this login",
        "grant DESCRIBE on it, or name it in topics.exclude if it was deleted on purpose (with ferry.guard.topic.gone "
        "= skip, all such topics are only noted)",
    ),
    "source.deleted.copy-left": Entry(
        K.TOPIC_GONE,
        "source topic {topic} was deleted, but its copy {target} was not",
        "{why}; delete it by hand, or name {topic} in topics.exclude to keep it",
    ),
    "source.hidden": Entry(
        K.NOT_AUTHORIZED, "not allowed to see topic {topic} on cluster {cluster}", "grant READ on it"
    ),
    "source.settings-hidden": Entry(
        K.NOT_AUTHORIZED,
        "not allowed to read the settings of topic {topic} on cluster {cluster}, which topic {target} needs when it "
        "is created",
        "grant DESCRIBE_CONFIGS on it, or create topic {target} by hand",
    ),
    "settings.unknown": Entry(
        K.NO_LEADER,
        "cluster {cluster} answers {answer} instead of the settings of topic {name}",
        "look at its brokers' logs; the next run copies it",
    ),
    "source.silent": Entry(
        K.NO_LEADER,
        "no leader of {place} on cluster {cluster} reports its log's end",
        "bring its brokers back",
    ),
    "source.deal-not-begun": Entry(
        K.NO_LEADER,
        "the copy of topic {topic} does not begin, because all partitions must begin together and {places} cannot be "
        "asked",
        BROKERS,
    ),
    # What a run finds while it reads.
    "source.gone.since-plan": Entry(
        K.TOPIC_GONE,
        "topic {topic} on cluster {cluster} is gone since the plan",
        "if that was intended, remove it from topics; then run again",
    ),
    "source.recreated.since-plan": Entry(
        K.TOPIC_RECREATED, "topic {topic} on cluster {cluster} was created again since the plan", _PLAN_AGAIN
    ),
    "source.not-served": Entry(
        K.NO_LEADER,
        "the leader of {source} on cluster {cluster} does not serve it ({why})",
        "look at {brokers}, then run again",
    ),
    "source.not-authorized": Entry(
        K.NOT_AUTHORIZED, "not allowed to read topic {topic} on cluster {cluster}", "grant READ and DESCRIBE"
    ),
    "source.corrupt": Entry(
        K.CORRUPT,
        "cluster {cluster} calls {source} corrupt at offset {at}",
        "restore the partition from another replica, then run again",
    ),
    "source.damaged": Entry(
        K.CORRUPT,
        "the batch at offset {at} of {source} says that it has {bytes} bytes",
        "the source's copy is damaged; restore it from a replica, or pass it with ferry skip",
    ),
    # The record source of Spark has no plan. `of` is the code of what a run would refuse.
    "source.unreadable": Entry(None, "{source} on cluster {cluster} cannot be read on from offset {at}", "{why}"),
}
