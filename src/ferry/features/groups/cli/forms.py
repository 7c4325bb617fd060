"""The JSON that `ferry groups` and `ferry translate` return: a contract, described in docs/json.md with schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import Kind, enum, filled, many, optional, typed
from ferry.features.groups.rules.checkpoints import Write
from ferry.features.groups.rules.codec import Snapshot
from ferry.features.groups.rules.offset_map import Translated
from ferry.features.groups.rules.table import GroupHead, GroupOffset, GroupRow, GroupTable
from ferry.features.groups.rules.translation import AtOffset, GoesOnIn, GroupTranslation, Translation, Troubled
from ferry.ledger.checkpoint_codec import OUTCOME, left_json
from ferry.model import Flow, Found, GroupKind, GroupOutcome, Member

if TYPE_CHECKING:
    from ferry.features.groups.acts.checkpoint import Looked


GROUPS = Form(GroupOutcome, *(one for one in OUTCOME.table if one.name != "at_ms"))
"""What happened to groups, without the time."""


def _is_plain(write: Write) -> bool:
    return not write.checkpoint.read


SNAPSHOT = Form(
    Snapshot,
    F("name"),
    F("at_ms"),
    F("who", kind=filled(""), says="user@host; null: a run"),
    F("groups"),
)

WRITE = Form(
    Write,
    F("group", "checkpoint.group"),
    F(
        "outcome",
        "checkpoint.outcome",
        enum(Found),
        says="as of ferry translate; again: of a repartitioned topic; from there on the group misses nothing and "
        "reads some records again",
    ),
    F("source_topic", "checkpoint.source.topic"),
    F(
        "source_partition",
        lambda write: None if write.checkpoint.read else write.checkpoint.source.partition,
        typed(int | None),
        says="null: all of them, because the topic is repartitioned",
    ),
    F(
        "read",
        "checkpoint.read",
        many(),
        omit=_is_plain,
        says="of a repartitioned topic: what the group has read of each source partition",
    ),
    F(
        "read_again_at_most",
        "checkpoint.again",
        omit=_is_plain,
        says="of a repartitioned topic: records; null: not known, because their receipts have gone",
    ),
    F("source_offset", "checkpoint.source_offset", says="of a repartitioned topic: the sum over its partitions"),
    F("target_topic", "checkpoint.target.topic"),
    F("target_partition", "checkpoint.target.partition"),
    F("target_offset", "checkpoint.target_offset"),
    F(
        "before",
        lambda write: None if write.before is None else write.before.offset,
        typed(int | None),
        says="what the target had; null: nothing",
    ),
)


def sync_json(flow: Flow, run: str | None, looked: Looked, done: GroupOutcome | None) -> Json:
    """Make the answer of `ferry groups sync`. `run` null is a dry run: `writes` are then what would be written."""
    return {
        "flow": str(flow),
        "run": run,
        "writes": [WRITE.dump(one) for writes in looked.decided.writes.values() for one in writes],
        "unchanged": looked.decided.unchanged,
        "left": [left_json(one) for one in (looked.left if done is None else done.left)],
    }


WORD = Kind(schema=lambda: {"enum": [one.word for one in get_args(Translated)]})
"""The word of a translation's outcome."""

_OWNER = Form(Member, F("member_id"), F("client_id"), F("host"), name="owner")

_LOG_SIZE_SAYS = "the high watermark; null: the topic is deleted, or the partition has no leader"
_LAG_SAYS = "log_size minus offset; negative: the offset is after the end of the log"

STANDING = Form(
    GroupOffset,
    F("offset", says="the committed offset: the next one to be read; null: the owner has committed none yet"),
    F("log_size", says=_LOG_SIZE_SAYS),
    F("lag", least=None, says=_LAG_SAYS),
    F("owner", kind=optional(_OWNER.kind), says="the member that reads the partition; null: none does"),
)
"""The position of a group on a partition."""

_HEAD = Form(
    GroupHead,
    F("kind", kind=enum(GroupKind)),
    F("state", says="Kafka's word: Stable, Empty, ...; empty where the brokers do not report it"),
    F("members", says="null: not known"),
    name="head",
)

_TRANSLATED = Form(
    GroupRow,
    F("outcome", "outcome.word", WORD, says="as of ferry translate"),
    F("offset", "translated.offset", typed(int), says="where a reader on the target continues"),
    F("log_size", "translated.log_size", says=_LOG_SIZE_SAYS),
    F("lag", "translated.lag", least=None, says=_LAG_SAYS),
    name="translated",
)
"""The translated position of a partition that has one."""

_ROW = Form(
    GroupRow,
    F(
        "topic",
        lambda row: None if row.source is None else row.source.topic,
        typed(str | None),
        says="name at the source; null: the group has this position on the target alone",
    ),
    F("partition", lambda row: None if row.source is None else row.source.partition, typed(int | None)),
    F(
        "target_topic",
        lambda row: None if row.target is None else row.target.topic,
        typed(str | None),
        says="null: nothing of the partition is copied, its offset has no counterpart, or the target does not answer",
    ),
    F("target_partition", lambda row: None if row.target is None else row.target.partition, typed(int | None)),
    F("source", "at_source", optional(STANDING.kind)),
    F(
        "translated",
        lambda row: None if row.translated is None or row.outcome is None else row,
        optional(_TRANSLATED.kind),
    ),
    F("target", "at_target", optional(STANDING.kind)),
    name="partition",
)

TABLE = Form(
    GroupTable,
    F("group"),
    F(
        "source",
        kind=optional(_HEAD.kind),
        says="null: the cluster does not list the group, or does not answer",
    ),
    F("target", kind=optional(_HEAD.kind)),
    F("partitions", "rows", many(_ROW.kind)),
    name="group",
)
"""One group of `ferry groups`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A translation with the offset that was asked about."""

    found: Translation
    offset: int
    reverse: bool

    @property
    def source_offset(self) -> int:
        return self.found.outcome.offset if self.reverse else self.offset

    @property
    def target_offset(self) -> int:
        return self.offset if self.reverse else self.found.outcome.offset


TRANSLATION = Form(
    _Answer,
    F(
        "pruned_before",
        "found.pruned",
        typed(int),
        omit=lambda one: one.found.pruned is None,
        says="with before, where both sides have deleted the record: offsets of the asked side before this one were "
        "pruned from the ledger; absent otherwise",
    ),
    F(
        "outcome",
        "found.outcome.word",
        WORD,
        says="gap: nothing of the given offset was copied, the other one is where a reader continues; ahead: not "
        "copied yet, the other one is the copied end; before: the other one is where the copy begins; approximate: "
        "copied by MirrorMaker before the lane took over, the other one is at or before the record; log-start: the "
        "other side has deleted the record, the other one is where its log starts",
    ),
    F("source_topic", "found.source.topic"),
    F("source_partition", "found.source.partition"),
    F("source_offset", says="the given offset; with --reverse the answer"),
    F("target_topic", "found.target.topic"),
    F("target_partition", "found.target.partition"),
    F("target_offset", says="the answer; with --reverse the given offset"),
    name="translation",
)
"""`ferry translate`: one offset."""

NOT_COPIED = Form(
    AtOffset,
    F("topic", "place.topic", says="name on the side of the group"),
    F("partition", "place.partition"),
    F("offset"),
    name="not_copied",
)

NOT_TRANSLATED = Form(
    Troubled,
    F("topic", "place.topic", says="name on the side of the group"),
    F("partition", "place.partition"),
    F("offset"),
    F("why"),
    name="not_translated",
)

GOES_ON = Form(
    GoesOnIn,
    F("source_topic", "topic"),
    F("target_topic", "place.topic"),
    F("target_partition", "place.partition"),
    F("target_offset", "at.offset"),
    F(
        "read_again_at_most",
        "at.again",
        says="records; null: all records there, because the receipts of that time are deleted",
    ),
    name="dealt",
)
"""Where a group continues in one target partition of a repartitioned topic."""


def translation_json(found: Translation, offset: int, *, reverse: bool) -> Json:
    """Return the answer of `ferry translate` for one offset."""
    return TRANSLATION.dump(_Answer(found=found, offset=offset, reverse=reverse))


def group_translation_json(flow: Flow, whole: GroupTranslation, *, reverse: bool) -> Json:
    """Return the answer of `ferry translate --group`."""
    return {
        "flow": str(flow),
        "group": whole.group,
        "partitions": [translation_json(found, offset, reverse=reverse) for offset, found in whole.found],
        "not_copied": [NOT_COPIED.dump(one) for one in (*whole.uncopied, *whole.foreign)],
        "not_translated": [NOT_TRANSLATED.dump(one) for one in whole.troubled],
        "dealt": [GOES_ON.dump(one) for one in whole.dealt],
    }
