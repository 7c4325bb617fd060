"""Why something is not copied: the catalogue of refusals. Pure.

A refusal is a code of ENTRIES with its facts. Its sentence is made here: what is the matter, then the remedy. Reports,
ledger and JSON have all three. A code never changes its meaning; a sentence may become better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.messages.entry import Entry
from ferry.model import Refusal, RefusalKind, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.model.refusal import Fact
from ferry.words import to_the_second

K = RefusalKind

ANEW = "leave the topic out here (topics.exclude), and copy it anew under another alias of the source cluster"
"""The way out when what was copied and what is there now do not belong together: nothing is mixed or overwritten."""

_UNCLEAN = "unclean leader election?"
_OR_ADOPT = (
    "when MirrorMaker copied them, take over from it (ferry adopt); when the ledger was lost, write it again from an "
    "export (ferry ledger rebuild), or delete the copy to have it copied anew; when somebody else writes there, "
    f"{ANEW}, or copy behind these records with ferry.guard.foreign.writer = skip"
)
_COMPARE = (
    f"compare both sides, then {ANEW}; or copy the new records behind the old ones with "
    "ferry.guard.source.truncated = restart"
)
_AGAIN_AT_TARGET = (
    f"find out who did it, then {ANEW}; or copy again what it lost with ferry.guard.target.changed = restart"
)
_FIND_OUT = f"find out who did it, then {ANEW}"
_BROKERS = "bring its brokers back, the next run copies it"
_OR_SKIP = "or copy behind it, whatever comes of it, with ferry.guard.foreign.writer = skip"
_OPEN = "somebody else has a transaction open on {where}, from offset {start} on{whose}"
_END_IT = (
    "let its producer end it, or abort it with kafka-transactions.sh abort --topic {target} --partition {number} "
    "--start-offset {start}, and take the writer's right to write"
)
_SEEN_LATE = (
    "raise delete.retention.ms at the source above what lies between two runs, or what a first copy takes, for "
    "otherwise the next one comes too late as well; then go on with ferry.guard.tombstones.passed = skip, or"
)
_RETENTION = f"raise retention at the source, and go on there with ferry.guard.retention.passed = skip; or {ANEW}"
_OR_WAIT = "or wait for topics to come with ferry.guard.topics.none = skip"


ENTRIES: Mapping[str, Entry] = {
    # Words of something else: of a broker, of Spark, of an error that another place has made.
    "said": Entry(None, "{why}"),
    # The source, as it is now.
    "source.no-leader": Entry(K.NO_LEADER, "source {source} has no leader", _BROKERS),
    "source.unserved": Entry(None, "source {source} is left out, {why}; the next run copies it"),
    "source.recreated": Entry(
        K.TOPIC_RECREATED,
        "source topic {topic} was deleted and created again after {end} offsets of partition {partition} were copied "
        "(topic id {then}, now {now})",
        f"{ANEW}; or copy it behind the old records with ferry.guard.topic.recreated = restart",
    ),
    "source.recreated.fewer": Entry(
        K.TOPIC_RECREATED,
        "source {source} was copied up to offset {end}, now topic {topic} has {partitions} partition(s)",
        f"it was deleted and created again; {ANEW}",
    ),
    "source.recreated.dealt": Entry(
        K.TOPIC_RECREATED,
        "source topic {topic} was deleted and created again since it was copied to {target} (its id is {now})",
        ANEW,
    ),
    "source.recreated.dealt.fewer": Entry(
        K.TOPIC_RECREATED,
        "source topic {topic} was deleted and created again since it was copied to {target} (it has {partitions} "
        "partition(s) where {read} were read)",
        ANEW,
    ),
    "source.diverged": Entry(
        K.SOURCE_TRUNCATED,
        "source {source} was copied up to offset {end}, but its log was truncated to {cut} since (leader epoch {epoch} "
        f"ends there; {_UNCLEAN})",
        _COMPARE,
    ),
    "source.shorter": Entry(
        K.SOURCE_TRUNCATED,
        "source {source} ends at offset {log_end} but was copied up to {end}",
        f"its log was truncated ({_UNCLEAN}); {_COMPARE}",
    ),
    "source.truncated.dealt": Entry(
        K.SOURCE_TRUNCATED,
        f"source {{source}} was copied up to offset {{end}}, but its log was truncated to {{cut}} since ({_UNCLEAN})",
        f"compare both sides, then {ANEW}",
    ),
    "source.truncated.before": Entry(
        K.SOURCE_TRUNCATED,
        "{source} on cluster {cluster} ended at offset {end} or behind before it was read, but its log was truncated "
        f"to {{cut}} meanwhile (leader epoch {{epoch}} ends there; {_UNCLEAN})",
        "nothing more of it was written; run again",
    ),
    "source.truncated.read": Entry(
        K.SOURCE_TRUNCATED,
        "{source} on cluster {cluster} was read up to offset {end}, but its log was truncated to {cut} since (leader "
        f"epoch {{epoch}} ends there; {_UNCLEAN})",
        "plan again, and the plan says what can be done",
    ),
    "source.retention-passed": Entry(
        K.RETENTION_PASSED,
        "source {source} begins at offset {log_start}, records {start} to {last} were deleted before being copied",
        _RETENTION,
    ),
    "source.retention-passed.one": Entry(
        K.RETENTION_PASSED,
        "source {source} begins at offset {log_start}, record {start} was deleted before being copied",
        _RETENTION,
    ),
    "source.tombstones-passed": Entry(
        K.TOMBSTONES_PASSED,
        "compacted source {source} was last read to its end before {read_ms:time}, longer ago than its "
        "delete.retention.ms of {retention_ms} allows, so keys that were deleted since may live on at the target",
        f"{_SEEN_LATE} delete the copy and let it be copied anew with ferry.guard.target.changed = restart",
    ),
    "source.tombstones-passed.dealt": Entry(
        K.TOMBSTONES_PASSED,
        "compacted source {source} was last read to its end before {read_ms:time}, longer ago than its "
        "delete.retention.ms of {retention_ms} allows, so keys that were deleted since may live on at the target",
        f"{_SEEN_LATE} {ANEW}",
    ),
    "source.cluster-changed": Entry(
        K.CLUSTER_CHANGED,
        "the source alias {alias} now leads to cluster {now}, the ledger was written from {then}",
        "correct the bootstrap servers, or use a new alias; or copy the other cluster's topics behind the old records "
        "with ferry.guard.cluster.changed = restart",
    ),
    "source.cluster-changed.dealt": Entry(
        K.CLUSTER_CHANGED,
        "topic {topic} was dealt to {target} from another cluster than {alias} leads to now, and cannot go on behind "
        "that",
        ANEW,
    ),
    "source.gone": Entry(
        K.TOPIC_GONE,
        "source topic {topic}, copied before in {partitions} partition(s), is not on cluster {cluster} any more, or "
        "hidden from this login",
        "grant DESCRIBE on it, or name it in topics.exclude if it was deleted on purpose (ferry.guard.topic.gone = "
        "skip notes all such topics instead)",
    ),
    "source.deleted.copy-left": Entry(
        K.TOPIC_GONE,
        "source topic {topic} was deleted, its copy {target} is left",
        "{why}; delete it by hand, or name {topic} in topics.exclude to keep it",
    ),
    "source.hidden": Entry(
        K.NOT_AUTHORIZED, "not allowed to see topic {topic} on cluster {cluster}", "grant READ on it"
    ),
    "source.settings-hidden": Entry(
        K.NOT_AUTHORIZED,
        "not allowed to read the settings of topic {topic} on cluster {cluster}, with which topic {target} is to be "
        "created",
        "grant DESCRIBE_CONFIGS on it, or create topic {target} by hand",
    ),
    "source.silent": Entry(
        K.NO_LEADER,
        "no leader of {place} on cluster {cluster} tells how far its log reaches",
        "bring its brokers back",
    ),
    "source.deal-not-begun": Entry(
        K.NO_LEADER,
        "the copy of topic {topic} does not begin, for where it begins is settled for all partitions at once and "
        "{places} cannot be asked",
        _BROKERS,
    ),
    # What the flow names.
    "topics.none.name": Entry(
        K.TOPICS_NONE,
        "topics names {topic}, which cluster {cluster} does not have or does not show to this login",
        f"correct it, create the topic, or grant DESCRIBE on it; {_OR_WAIT}",
    ),
    "topics.none.one": Entry(  # of several names: only a note
        K.TOPICS_NONE,
        "topics names {topic}, which cluster {cluster} does not have or does not show to this login",
        "correct it, create the topic, or grant DESCRIBE on it",
    ),
    "topics.none.empty": Entry(
        K.TOPICS_NONE,
        "flow {flow} copies nothing, for topics is empty",
        f"name the topics that it is for; {_OR_WAIT}",
    ),
    "topics.none.excluded": Entry(
        K.TOPICS_NONE,
        "topics.exclude leaves out all that topics takes of cluster {cluster} ({some})",
        f"correct one of the two; {_OR_WAIT}",
    ),
    "topics.none.shown": Entry(
        K.TOPICS_NONE,
        "cluster {cluster} shows no topic to this login that flow {flow} could copy",
        f"create the topics, or grant DESCRIBE on them; {_OR_WAIT}",
    ),
    "topics.none.matched": Entry(
        K.TOPICS_NONE,
        "topics ({patterns}) matches none of the {shown} topic(s) that cluster {cluster} shows",
        "correct it (ferry plan --why NAME tells of one topic), or grant DESCRIBE on the topics; " + _OR_WAIT,
    ),
    # Names, and the way of the flows.
    "name.too-long": Entry(
        K.NAME_TOO_LONG,
        "target name {target}... of topic {cut}... has {length} characters, Kafka allows {most}",
        "{shorter}",
    ),
    "name.invalid": Entry(
        K.INVALID_NAME,
        "{by} names topic {topic} {target!r} on the target, which {why}",
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
        "let {last} rest until a switch (ferry pause '{last}' --why standby), or exclude it from one of these flows, "
        "for example in {last}.topics.exclude, or use DefaultReplicationPolicy",
    ),
    "way.returning": Entry(
        K.LOOP,
        "offsets {start} to {last} of {source} came from cluster {cluster}, and would go back there",
        "disable the flow {back}, and copy what lies behind them in a new lane with {flow}.ferry.start = "
        "{topic}:{partition}:{behind}",
    ),
    # Who owns the copy.
    "owned.by-lane": Entry(
        K.OWNED,
        "target topic {target} belongs to lane {owner} of this flow",
        "copy it with ferry.lane = {owner}, or leave it out here (topics.exclude)",
    ),
    "owned.no-live-lane": Entry(
        K.OWNED,
        "no live lane has target topic {target} yet, so nothing is there to append to",
        "copy the window with --into-live, which keeps the order",
    ),
    "owned.by-flow": Entry(
        K.OWNED,
        "target topic {target} belongs to the flow of ledger {ledger}",
        "let the policy give another name, exclude the topic, or merge both flows with ferry.merge.topics",
    ),
    "owned.not-shared": Entry(
        K.OWNED,
        "target topic {target} belongs to the flow of ledger {ledger} alone",
        "name the topic in that flow's ferry.merge.topics, too, and let it run once",
    ),
    # The target, as it is now.
    "target.no-leader": Entry(K.NO_LEADER, "target {place} has no leader", _BROKERS),
    "target.unserved": Entry(None, "target {place} is left out, {why}; the next run copies to it"),
    "target.too-few-replicas": Entry(
        K.TOO_FEW_REPLICAS,
        "target {place} has {in_sync} replicas in sync where min.insync.replicas asks for {needed}",
        "bring its brokers back or ask for fewer, the next run copies it",
    ),
    "target.no-space": Entry(
        K.NO_SPACE,
        "broker {broker} of cluster {cluster} has {usable:size} of {total:size} left, and this run would write "
        "{wanted:size} there, among it {place}; {percent} % must stay free",
        "make room, lower ferry.run.max.bytes, or lower ferry.target.free.percent",
    ),
    "target.partition-count": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, source topic {topic} has {here}, and partition n is copied to "
        "partition n",
        "give the source as many, or delete the target topic so that Ferry creates it",
    ),
    "target.partition-count.copied": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, source topic {topic} has {here}, and partition n is copied to "
        "partition n",
        f"give the source as many, or {ANEW}",
    ),
    "target.partition-count.dealt": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, transform {transform} wants {wanted}, and Kafka takes none away",
        f"write ferry.transform.{{transform}}.partitions = {{there}}, or {ANEW}",
    ),
    "target.partition-count.dealt.empty": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, transform {transform} wants {wanted}, and Kafka takes none away",
        "write ferry.transform.{transform}.partitions = {there}, or delete the target topic so that Ferry creates it",
    ),
    "target.cluster-changed": Entry(
        K.CLUSTER_CHANGED,
        "the target alias {alias} now leads to cluster {now}, whose ledger was written on cluster {then}",
        "correct the bootstrap servers; if the cluster is a copy of the other one, move the ledger topic away and use "
        "a new alias for the source",
    ),
    "target.gone": Entry(
        K.TARGET_CHANGED,
        "target topic {target} is gone although {end} source offsets were copied into it",
        _AGAIN_AT_TARGET,
    ),
    "target.recreated": Entry(
        K.TARGET_CHANGED,
        "target topic {target} was deleted and created again since the last receipt",
        _AGAIN_AT_TARGET,
    ),
    "target.shorter": Entry(
        K.TARGET_CHANGED,
        "target {place} ends at offset {log_end} but the last receipt wrote up to {end}",
        f"it lost records; {_AGAIN_AT_TARGET}",
    ),
    "target.cut": Entry(
        K.TARGET_CHANGED,
        "target {place} was written up to {end} by the last receipt, but its log was cut to {cut} since (leader epoch "
        f"{{epoch}} ends there; {_UNCLEAN}), and others have filled it up again",
        f"it lost records; {_AGAIN_AT_TARGET}",
    ),
    "target.gone.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} is gone although records were dealt to {partitions} partition(s) of it",
        _FIND_OUT,
    ),
    "target.recreated.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} was deleted and created again since the last receipt",
        _FIND_OUT,
    ),
    "target.fewer.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} has {partitions} partition(s), fewer than were written",
        _FIND_OUT,
    ),
    "target.lost.dealt": Entry(
        K.TARGET_CHANGED,
        "target {place} was written up to {end} by the last receipt and has that up to {cut}",
        f"it lost records; {_FIND_OUT}",
    ),
    "target.gone.since-plan": Entry(
        K.TARGET_CHANGED,
        "target topic {target} on cluster {cluster} is gone since the plan of run {run}",
        "find out who did it, then run again",
    ),
    "target.recreated.since-plan": Entry(
        K.TARGET_CHANGED,
        "target topic {target} on cluster {cluster} was deleted and created again since the plan of run {run}",
        "find out who did it, then run again",
    ),
    "target.cut.at-work": Entry(
        K.TARGET_CHANGED,
        "target {place} on cluster {cluster} was written up to {end}, but its log was cut to {cut} since (leader epoch "
        f"{{epoch}} ends there; {_UNCLEAN})",
        "it lost records, which the next plan tells; run again",
    ),
    "target.silent": Entry(
        K.NO_LEADER,
        "whether {place} on cluster {cluster} still has what was written to it is not known, for its leader does not "
        "answer",
        "bring its brokers back",
    ),
    "target.unseen": Entry(None, "{place} on cluster {cluster} could not be looked into before it is written, {why}"),
    "target.not-complete": Entry(
        K.NO_LEADER,
        "topic {target} on cluster {cluster} was created, but not all of its partitions have a leader yet",
        "look at the brokers' health; the next run copies it",
    ),
    "target.leaderless": Entry(K.NO_LEADER, "{why}", "bring its brokers back"),
    "target.answers": Entry(None, "{place} on cluster {cluster} answers {answer}"),
    "target.not-authorized": Entry(
        K.NOT_AUTHORIZED, "not allowed to {act} {place} on cluster {cluster}", "grant {grant}"
    ),
    # Somebody else at the target.
    "foreign.record": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to target {place}, at offset {offset}",
        f"find the writer and take its right to write, then {ANEW}; or leave its records where they are with "
        "ferry.guard.foreign.writer = skip",
    ),
    "foreign.record.behind": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to target {place}, at offset {offset}, behind our last record at {ours}",
        f"find the writer and take its right to write, then {ANEW}; or leave its records where they are with "
        "ferry.guard.foreign.writer = skip",
    ),
    "foreign.occupied": Entry(
        K.FOREIGN_WRITER,
        "target {place} already holds records, from offset {offset} on, of which the ledger has no receipt",
        _OR_ADOPT,
    ),
    "foreign.open": Entry(K.FOREIGN_WRITER, _OPEN, f"{_END_IT}; {_OR_SKIP}"),
    "foreign.open.dealt": Entry(K.FOREIGN_WRITER, _OPEN, _END_IT),
    "foreign.open.at-work": Entry(K.FOREIGN_WRITER, _OPEN, f"{_END_IT}; then run again"),
    "foreign.record.dealt": Entry(
        K.FOREIGN_WRITER,
        "target {place} has a record of somebody else at offset {offset}, behind our last record at {ours}",
        f"find the writer and take its right to write, then {ANEW}",
    ),
    "foreign.occupied.dealt": Entry(
        K.FOREIGN_WRITER,
        "target {place} has a record of somebody else at offset {offset}, where the ledger has no receipt of any",
        f"find the writer and take its right to write, then {ANEW}",
    ),
    "foreign.since-plan": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to {place} on cluster {cluster}, at offset {at}, after run {run} was planned",
        "find the writer and take its right to write, then run again",
    ),
    "foreign.at-work": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to {place} on cluster {cluster} while it was being copied (at offset {at})",
        "find the writer, then run again",
    ),
    "foreign.merged": Entry(
        K.FOREIGN_WRITER,
        "offset {offset} of merged {place} was written by somebody else",
        "none of the ledgers of the flows that share it names it; grant READ on topics ferry-ledger.* at the target if "
        "one of them is hidden from this login, else find the writer and copy under a new target name",
    ),
    # The ledger.
    "ledger.lost": Entry(
        K.LEDGER_BEHIND,
        "target {place} was copied up to source offset {end}, as the lane's own position says, but the ledger has no "
        "receipt of it",
        "it was lost, or rebuilt from an older export; delete it and write it again from the newest export (ferry "
        "ledger rebuild); or, to copy all of the topic anew, delete the target topic",
    ),
    "ledger.behind": Entry(
        K.LEDGER_BEHIND,
        "target {place} was copied up to source offset {end}, as the lane's own position says, but the ledger has it "
        "up to {known}",
        "it was lost, or rebuilt from an older export; delete it and write it again from the newest export (ferry "
        "ledger rebuild); or, to copy all of the topic anew, delete the target topic",
    ),
    "ledger.newer-rule": Entry(
        K.LEDGER_BEHIND,
        "run {run} wrote records of topic {topic} to {place} by the rule of ledger offset {newer}, and the ledger has "
        "an older one in force, of offset {known}",
        f"an earlier version of Ferry wrote to it after this run. Upgrade Ferry wherever this flow runs, then {ANEW}",
    ),
    # Transforms.
    "transform.unknown-target": Entry(
        K.TRANSFORM,
        "ferry.transform.{transform} names the copy of topic {topic} record by record ({why}), and a run has to know "
        "it before",
        "list the topics that they may name in ferry.transform.{transform}.targets, name it by topic, target and "
        "constants alone, or RegexRouter without such a predicate, or leave the topic out (topics.exclude)",
    ),
    "transform.merged": Entry(
        K.TRANSFORM,
        "topic {topic} gets other partitions (ferry.transform.{transform}.partitions), and its target {target} is "
        "shared with other flows (ferry.merge.topics)",
        "take it out of one of both",
    ),
    "transform.copied-before": Entry(
        K.TRANSFORM,
        "target topic {target} was copied partition by partition up to now, and transform {transform} would deal topic "
        "{topic} to {partitions} partitions",
        f"remove ferry.transform.{{transform}}.partitions, or {ANEW}",
    ),
    "transform.dealt-before": Entry(
        K.TRANSFORM,
        "target topic {target} was dealt to {partitions} partitions by run {run}, and topic {topic} is to keep its own "
        "now",
        f"write ferry.transform.NAME.partitions again, or {ANEW}",
    ),
    "transform.dealt-before.unknown": Entry(
        K.TRANSFORM,
        "target topic {target} was dealt to other partitions by run {run}, and topic {topic} is to keep its own now",
        f"write ferry.transform.NAME.partitions again, or {ANEW}",
    ),
    "transform.window": Entry(
        K.TRANSFORM,
        "topic {topic} gets other partitions (ferry.transform.{transform}.partitions), and a window of it cannot be "
        "copied by itself",
        "name other topics (--topic), or copy all of it anew under another alias of the source cluster",
    ),
    "transform.scratch": Entry(
        K.TRANSFORM,
        "records of topic {topic} choose among several topics (ferry.transform.{transform}.targets), and lane {lane} "
        "has scratch topics of its own",
        "leave the topic out here (--topic)",
    ),
    "transform.lost-rule": Entry(
        K.TRANSFORM,
        "transform {transform} has changed, and what some partitions of {target} have already has to be finished for "
        "the others by what it was, which cannot be carried out",
        f"{{why}}; or {ANEW}",
    ),
    "transform.poison": Entry(K.POISON, "{why}"),
    # Dead letters.
    "letters.no-topic": Entry(
        None,
        "{topic} is not copied, for dead letters of ferry.transform.{transform} have no topic {letters}",
        "{why}",
    ),
    "letters.gone": Entry(
        K.TARGET_CHANGED,
        "topic {letters} on cluster {cluster}, where the record at offset {at} of {read} is to go as a dead "
        "letter, is gone",
        "run again, and Ferry makes it",
    ),
    "letters.too-large": Entry(
        K.TOO_LARGE,
        "the record at offset {at} of {read} takes {bytes} bytes as a dead letter, where {letters} on cluster "
        "{cluster} takes {limit}",
        "raise max.message.bytes there",
    ),
    "letters.leaderless": Entry(K.NO_LEADER, "{why}, and dead letters go there", "bring its brokers back"),
    # Records.
    "record.too-large": Entry(
        K.TOO_LARGE,
        "the record at offset {at} of {read} takes {bytes} bytes, where {place} takes {limit}",
        "raise max.message.bytes there, or let the transform shorten it",
    ),
    "batch.too-large": Entry(
        K.TOO_LARGE,
        "the batch at source offset {at} is larger than {place} on cluster {cluster} accepts",
        "raise max.message.bytes there, or grant DESCRIBE_CONFIGS on the topic, so that Ferry knows the limit and "
        "splits batches",
    ),
    "batch.timestamp": Entry(
        K.INVALID_CONFIG,
        "{place} on cluster {cluster} refuses a timestamp in the batch at source offset {at} ({words})",
        "raise message.timestamp.after.max.ms on that topic for times ahead of its brokers' clock, or "
        "message.timestamp.before.max.ms for old ones; if config.properties.exclude names it, take it out there",
    ),
    "batch.not-accepted": Entry(
        K.INVALID_CONFIG,
        "{place} on cluster {cluster} does not accept the batch at source offset {at} ({words})",
        "compare the topics' cleanup settings",
    ),
    # A slot.
    "slot.failed": Entry(K.SLOT_FAILED, "{piece} was not (wholly) copied", "{why}"),
}
"""By code."""


def refused(
    code: str, topic: str, partition: int | None = None, *, kind: RefusalKind | None = None, **facts: Fact
) -> Refusal:
    """A refusal of ENTRIES, with the facts that its sentence has places for. `kind` where the entry has none.

    The sentence also knows `topic`, `partition`, and both as `source`. Raises KeyError for a code that is not there or
    a fact that is missing, ValueError for a kind that is.
    """
    entry = ENTRIES[code]
    of = entry.kind or kind
    if of is None:
        raise ValueError(f"code {code} is used for several kinds: name one")
    return Refusal(
        topic=topic,
        partition=partition,
        kind=of,
        message=entry.sentence(_placed(topic, partition, facts)),
        code=code,
        facts=tuple(sorted(facts.items())),
    )


def _placed(topic: str, partition: int | None, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts with those that each refusal has."""
    place: dict[str, Fact] = {} if partition is None else {"partition": partition, "source": f"{topic}-{partition}"}
    return {"topic": topic, **place, **facts}


def sentence(code: str, **facts: Fact) -> str:
    """The sentence of a code, where it is not a refusal."""
    return ENTRIES[code].sentence(facts)


def what_of(refusal: Refusal) -> str:
    """What is the matter, without the remedy. Of a refusal that an earlier Ferry recorded, as its sentence divides."""
    entry = ENTRIES.get(refusal.code)
    if entry is None:
        return refusal.message.partition(": ")[0]
    return entry.what_is(_placed(refusal.topic, refusal.partition, dict(refusal.facts)))


def open_facts(where: str, place: TopicPartition, transaction: OpenTransaction) -> dict[str, Any]:
    """The facts of the codes `foreign.open`; `where` is how the partition is called."""
    one, whose = transaction, ""
    if one.producer_id >= 0:
        whose = f" (producer id {one.producer_id}"
        whose += f", transactional id {one.transactional_id}" if one.transactional_id else ""
        whose += f", last record of {to_the_second(one.last_ms)}" if one.last_ms >= 0 else ""
        whose += ")"
    return {
        "where": where,
        "target": place.topic,
        "number": place.partition,
        "start": one.start,
        "whose": whose,
    }


def open_sentence(where: str, place: TopicPartition, transaction: OpenTransaction) -> str:
    """Whose transaction is open on `place`, and how it is ended; `where` is how the partition is called."""
    return sentence("foreign.open.dealt", **open_facts(where, place, transaction))
