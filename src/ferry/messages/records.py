"""Why records are not copied: their transforms, dead letters, and batches that a broker does not take."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.messages.phrases import ANEW
from ferry.model import RefusalKind

K = RefusalKind

RECORDS: Mapping[str, Entry] = {
    "transform.unknown-target": Entry(
        K.TRANSFORM,
        "ferry.transform.{transform} names the copy of topic {topic} record by record ({why}), and a run has to know "
        "it before",
        "write ferry.transform.{transform}.targets = the topics that they may name, with commas between, and "
        "ferry.transform.{transform}.partitions; or name it by topic, target, literals, concat and regexp_replace "
        "alone, or RegexRouter without such a predicate; or leave the topic out (topics.exclude)",
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
    "slot.failed": Entry(K.SLOT_FAILED, "{piece} was not (wholly) copied", "{why}"),
}
