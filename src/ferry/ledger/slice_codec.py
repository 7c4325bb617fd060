"""The lines of a plan: its slices, and its topic changes."""

from __future__ import annotations

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, enum
from ferry.ledger.codec import SOURCE, TARGET
from ferry.ledger.receipt_codec import TOPIC_ID
from ferry.model import ChangeKind, Slice, TopicChange


def _since_later(name: str) -> F:
    """A number that no earlier Ferry knows; -1, and left out, where there is nothing to say."""
    return F(name, default=-1, omit=lambda piece: getattr(piece, name) < 0)


def _where_said(name: str, default: object) -> F:
    """A field that is left out where there is nothing to say."""
    return F(name, default=default, omit=lambda piece: not getattr(piece, name))


SLICE = Form(
    Slice,
    *SOURCE,
    *TARGET,
    F("start"),
    F("end"),
    F("slot"),
    F("source_topic_id", kind=TOPIC_ID),
    F("target_topic_id", kind=TOPIC_ID),
    F("bytes_estimate"),
    F("first"),
    F("target_next", default=-1),
    F("log_start", default=0),
    F("merged", default=False),
    _since_later("target_end"),
    _since_later("since"),
    _since_later("read_epoch"),
    _since_later("read_end"),
    _since_later("target_epoch"),
    _where_said("compacted", False),
    _where_said("transform", ""),
    _where_said("transform_digest", ""),
    closed=True,  # a plan is carried out as it was decided, or not at all
)

parse_slice = SLICE.load
"""Inverse of `slice_json`."""

slice_json = SLICE.dump
"""A slice as the documented JSON object."""


_PAIRS = Kind(dict, lambda values: tuple(sorted(values.items())))

CHANGE = Form(
    TopicChange,
    F("kind", kind=enum(ChangeKind)),
    F("topic"),
    F("source_topic"),
    F("partitions"),
    F("replication_factor"),
    F("configs", kind=_PAIRS),
    F("was", kind=_PAIRS, default=(), omit=lambda change: not change.was),
    closed=True,
)

parse_change = CHANGE.load
"""Inverse of `change_json`."""

change_json = CHANGE.dump
"""A topic change as the documented JSON object."""
