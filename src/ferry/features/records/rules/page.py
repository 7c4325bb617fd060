"""A record on the operator's page: its question, and the answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.records.rules.one_record import (
    BothSides,
    Lack,
    OneRecord,
    Side,
    StampedBy,
    differing_headers,
)
from ferry.features.records.rules.part_text import PartText, Style, part_text
from ferry.model import TopicPartition
from ferry.page.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderText:
    """A header; `differs`: the other side has another one, or none, at its position."""

    name: PartText
    value: PartText
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordText:
    """A record in the form in which it is shown."""

    timestamp_ms: int | None
    """The record's timestamp; None: the record has none."""
    stamped_by: StampedBy
    key: PartText
    value: PartText
    headers: tuple[HeaderText, ...]
    more_headers: int
    """Headers after those that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideText:
    """What one side has at an offset, or why it has nothing."""

    cluster: str
    place: TopicPartition | None
    offset: int | None
    record: RecordText | None
    lack: Lack | None
    detail: str
    log_start: int | None
    log_end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStory:
    """A record at the source and its copy; `differences` are the names of the parts that differ."""

    source: SideText
    target: SideText
    transformed: bool
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfRecord(Question[RecordStory]):
    """The record at a source offset and its copy; `backward`: the record at a target offset and its original."""

    place: TopicPartition
    offset: int
    backward: bool = False
    lane: str = ""
    style: Style = "text"


def record_story(found: BothSides, source: str, target: str, style: Style) -> RecordStory:
    """Return both sides in a form; `source` and `target` are the aliases of the clusters."""
    one, other = found.source.record, found.target.record
    differs = () if one is None or other is None else differing_headers(one, other)
    return RecordStory(
        source=_side(found.source, source, differs, style),
        target=_side(found.target, target, differs, style),
        transformed=found.transformed,
        differences=found.differences,
    )


def _side(side: Side, cluster: str, differs: tuple[bool, ...], style: Style) -> SideText:
    begin, end = side.bounds or (None, None)
    return SideText(
        cluster=cluster,
        place=side.place,
        offset=side.offset,
        record=None if side.record is None else _record(side.record, differs, style),
        lack=side.lack,
        detail=side.detail,
        log_start=begin,
        log_end=end,
    )


def _record(record: OneRecord, differs: tuple[bool, ...], style: Style) -> RecordText:
    return RecordText(
        timestamp_ms=record.timestamp_ms,
        stamped_by=record.stamped_by,
        key=part_text(record.key, style),
        value=part_text(record.value, style),
        headers=tuple(
            HeaderText(
                name=part_text(name, "hex" if style == "hex" else "text"),
                value=part_text(value, style),
                differs=bool(differs) and differs[index],
            )
            for index, (name, value) in enumerate(record.headers)
        ),
        more_headers=record.more_headers,
    )
