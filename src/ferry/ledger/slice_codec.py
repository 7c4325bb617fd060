"""The lines of a plan: its slices, and its topic changes."""

from __future__ import annotations

from dataclasses import replace

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, enum, or_minus_one
from ferry.codec.schema import of_type
from ferry.ledger.codec import TARGET
from ferry.ledger.receipt_codec import TOPIC_ID
from ferry.model import ChangeKind, Slice, TopicChange


def _since_later(name: str, says: str = "") -> F:
    """Return a field for a number that a kept plan may lack; None, and left out, where it is not known."""
    return F(name, kind=or_minus_one(0), default=None, omit=lambda piece: getattr(piece, name) is None, says=says)


def _where_said(name: str, default: object, says: str) -> F:
    """Return a field that is left out where there is nothing to say."""
    return F(name, default=default, omit=lambda piece: not getattr(piece, name), says=says)


SLICE = Form(
    Slice,
    F("topic", "source.topic", says="name at the source"),
    F("partition", "source.partition"),
    *TARGET,
    F("start"),
    F("end"),
    F("slot", says="the task that copies it"),
    F("source_topic_id", kind=TOPIC_ID),
    F("target_topic_id", kind=TOPIC_ID),
    F("bytes_estimate"),
    F("first", says="whether nothing was copied of it before"),
    F("target_next", kind=or_minus_one(None), default=None),
    F("log_start", default=0),
    F("merged", default=False, says="true: others write to the target topic, too"),
    _since_later("target_end", "where the target partition ended when the plan was made; absent: not known"),
    F(
        "since",
        default=-1,
        omit=lambda piece: piece.since < 0,
        says="the run, by its generation, that last went back on the partition; absent: none did",
    ),
    _since_later(
        "read_epoch", "the leader epoch of what was read of the source's log up to read_end; absent: not known"
    ),
    _since_later("read_end"),
    _since_later(
        "target_epoch", "a leader epoch of the target in which its log reached target_next; absent: not known"
    ),
    _where_said(
        "compacted", False, "whether the source topic was compacted when the plan was made; absent: it was not"
    ),
    _where_said("transform", "", "the transform that makes its records; absent where they are copied as they are"),
    _where_said("transform_digest", "", "digest of that transform"),
    _since_later(
        "producer", "the producer id under which records keep the source's offsets; absent: they get the target's next"
    ),
    _since_later("max_age_ms", "with producer: how old a batch may be by its largest timestamp"),
    _since_later(
        "late_ms", "with producer: how late a marker may arrive that passes a hole; absent: holes are not passed"
    ),
    _since_later(
        "marked_ms",
        "with producer: until when earlier runs may have sent markers there, in ms; 0: all were answered; absent: none "
        "were sent",
    ),
    _since_later(
        "empty_until",
        "with producer: up to where the target may have empty records, which are deleted when a record follows; "
        "absent: none",
    ),
    _since_later(
        "continued_at",
        "with producer: before this offset both sides have the same records of other producers, because a switch had "
        "moved clients; absent: none",
    ),
    closed=True,  # a plan is carried out as it was decided, or not at all
)

parse_slice = SLICE.load
"""Return the slice of a JSON object that `slice_json` made."""

slice_json = SLICE.dump
"""Return a slice as the documented JSON object."""


_PAIRS = Kind(dict, lambda values: tuple(sorted(values.items())), lambda: of_type(dict[str, str]))
_SETTINGS = replace(_PAIRS, schema=lambda: of_type(dict[str, str | None]))

CHANGE = Form(
    TopicChange,
    F("kind", kind=enum(ChangeKind)),
    F("topic"),
    F("source_topic"),
    F("partitions", says="that it has afterwards; of a topic to be deleted, now"),
    F("replication_factor", least=None, says="of a new topic, -1: the target's default; else 0"),
    F("configs", kind=_SETTINGS, says="settings to make; null: reset to the target's default"),
    F(
        "was",
        kind=_PAIRS,
        default=(),
        omit=lambda change: not change.was,
        says="what is in force before; only where settings change",
    ),
    closed=True,
)

parse_change = CHANGE.load
"""Return the topic change of a JSON object that `change_json` made."""

change_json = CHANGE.dump
"""Return a topic change as the documented JSON object."""
