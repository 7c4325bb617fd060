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
        "ferry.transform.{transform} names the copy of topic {topic} record by record ({why}), but a run must know it "
        "in advance",
        "list the possible topics in ferry.transform.{transform}.targets, separated by commas, and write "
        "ferry.transform.{transform}.partitions; or name the copy by topic, target, literals, concat and "
        "regexp_replace alone, or by RegexRouter without such a predicate; or exclude the topic (topics.exclude)",
    ),
    "transform.merged": Entry(
        K.TRANSFORM,
        "topic {topic} gets other partitions (ferry.transform.{transform}.partitions), and its target {target} is "
        "shared with other flows (ferry.merge.topics)",
        "remove it from one of the two",
    ),
    "transform.copied-before": Entry(
        K.TRANSFORM,
        "target topic {target} was copied partition by partition until now, but transform {transform} would "
        "repartition topic {topic} into {partitions} partitions",
        f"remove ferry.transform.{{transform}}.partitions, or {ANEW}",
    ),
    "transform.dealt-before": Entry(
        K.TRANSFORM,
        "target topic {target} was repartitioned into {partitions} partitions by run {run}, but topic {topic} would "
        "now keep its own",
        f"write ferry.transform.NAME.partitions again, or {ANEW}",
    ),
    "transform.dealt-before.unknown": Entry(
        K.TRANSFORM,
        "target topic {target} was repartitioned by run {run}, but topic {topic} would now keep its own partitions",
        f"write ferry.transform.NAME.partitions again, or {ANEW}",
    ),
    "transform.window": Entry(
        K.TRANSFORM,
        "topic {topic} gets other partitions (ferry.transform.{transform}.partitions), and a single window of it "
        "cannot be copied",
        "name other topics (--topic), or copy all of it again under another alias of the source cluster",
    ),
    "transform.scratch": Entry(
        K.TRANSFORM,
        "records of topic {topic} go to one of several topics (ferry.transform.{transform}.targets), but lane {lane} "
        "has scratch topics of its own",
        "name other topics (--topic)",
    ),
    "transform.lost-rule": Entry(
        K.TRANSFORM,
        "transform {transform} has changed, and its old form can no longer run; some partitions of {target} have "
        "records of the old form, and the others still lack theirs",
        f"{{why}}; or {ANEW}",
    ),
    "transform.poison": Entry(K.POISON, "{why}"),
    "letters.no-topic": Entry(
        None,
        "{topic} is not copied, because topic {letters} for dead letters of ferry.transform.{transform} does not exist",
        "{why}",
    ),
    "letters.gone": Entry(
        K.TARGET_CHANGED,
        "topic {letters} on cluster {cluster}, which must take the record at offset {at} of {read} as a dead letter, "
        "is gone",
        "run again, and Ferry creates it",
    ),
    "letters.too-large": Entry(
        K.TOO_LARGE,
        "the record at offset {at} of {read} takes {bytes} bytes as a dead letter, but {letters} on cluster {cluster} "
        "accepts {limit}",
        "raise max.message.bytes there",
    ),
    "letters.leaderless": Entry(K.NO_LEADER, "{why}, and dead letters go there", "bring its brokers back"),
    "record.too-large": Entry(
        K.TOO_LARGE,
        "the record at offset {at} of {read} takes {bytes} bytes, but {place} accepts {limit}",
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
        "message.timestamp.before.max.ms for old ones; if config.properties.exclude names it, remove it there",
    ),
    "batch.not-accepted": Entry(
        K.INVALID_CONFIG,
        "{place} on cluster {cluster} does not accept the batch at source offset {at} ({words})",
        "compare the topics' cleanup settings",
    ),
    "batch.old-format": Entry(
        K.INVALID_CONFIG,
        "{place} on cluster {cluster} does not accept the batch at source offset {at}, because it keeps an old message "
        "format ({words})",
        "set message.format.version of that topic to 0.11.0 or newer, and name it in config.properties.exclude",
    ),
    "batch.compression": Entry(
        K.INVALID_CONFIG,
        "{place} on cluster {cluster} does not accept the compression of the batch at source offset {at} ({words})",
        "raise inter.broker.protocol.version of its brokers to 2.1 or newer, or set producer.compression.type = lz4",
    ),
    "slot.failed": Entry(K.SLOT_FAILED, "{piece} was not (wholly) copied", "{why}"),
}
