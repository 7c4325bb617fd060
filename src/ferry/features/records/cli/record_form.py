"""The JSON answer of `ferry records show`: a contract, described in docs/json.md with a schema."""

from __future__ import annotations

from typing import get_args

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, enum, many, optional, typed
from ferry.features.records.rules.one_record import Lack, StampedBy
from ferry.features.records.rules.page import HeaderText, RecordStory, RecordText, SideText
from ferry.features.records.rules.part_text import PartText, Style

_STYLE = Kind(schema=lambda: {"enum": [*get_args(Style)]})

_PART = Form(
    PartText,
    F("text", says="null: null, as the value of a tombstone"),
    F("bytes", "size", says="of the whole; null: null"),
    F("form", "style", _STYLE, says="the form of the text"),
    F("note", says="why it has another form than was asked for; empty: it has that one"),
    F("cut", "is_cut", says="whether there is more than the text has"),
    name="part",
)

_HEADER = Form(
    HeaderText,
    F("name", kind=_PART.kind),
    F("value", kind=_PART.kind),
    F("differs", says="whether the other side has another header, or none, at its position"),
    name="header",
)

_RECORD = Form(
    RecordText,
    F("timestamp_ms", least=None, says="null: it has none"),
    F("timestamp_type", "stamped_by", enum(StampedBy)),
    F("key", kind=_PART.kind),
    F("value", kind=_PART.kind),
    F("headers", kind=many(_HEADER.kind)),
    F("more_headers", says="headers after these"),
    name="record",
)

_SIDE = Form(
    SideText,
    F("cluster"),
    F("topic", lambda side: side.place and side.place.topic, typed(str | None), says="null: not known"),
    F("partition", lambda side: side.place and side.place.partition, typed(int | None), says="null: not known"),
    F("offset", says="null: the side has no offset for it, or it is not known"),
    F("record", kind=optional(_RECORD.kind), says="null: there is none, see lack"),
    F("lack", kind=optional(enum(Lack)), says="why there is no record; null: there is one"),
    F("detail", says="a sentence about lack; empty: there is no more to say"),
    F("log_start", says="null: not known"),
    F("log_end", says="the high watermark; null: not known"),
    name="side",
)

RECORD_STORY = Form(
    RecordStory,
    F("source", kind=_SIDE.kind),
    F("target", kind=_SIDE.kind),
    F("transformed", says="whether a transform of the file changes records of the topic"),
    F("differences", kind=many(), says="of timestamp, key, value and headers, those that differ"),
    name="record_story",
)
