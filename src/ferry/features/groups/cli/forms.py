"""The JSON that `ferry groups` returns: a contract, described in docs/json.md with a schema for each form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import enum, filled, many, typed
from ferry.features.groups.rules.checkpoints import Write
from ferry.features.groups.rules.codec import Snapshot
from ferry.ledger.checkpoint_codec import OUTCOME, left_json
from ferry.model import Flow, Found, GroupOutcome

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
