"""`ferry records show`: the record at an offset, and its copy on the other side."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_topics
from ferry.cli.options import LaneOption
from ferry.cli.output import echo, print_table
from ferry.model import TopicPartition
from ferry.words import size, to_the_ms

if TYPE_CHECKING:
    from ferry.features.records.rules.page import RecordStory, RecordText, SideText
    from ferry.features.records.rules.part_text import PartText

LACKS = 1


class Styled(StrEnum):
    """The forms of keys, values and headers."""

    TEXT = "text"
    JSON = "json"
    HEX = "hex"


@command(table=True)
def show_command(
    context: Context,
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC",
            help="The topic's name at the source; with --reverse, at the target.",
            autocompletion=offered_topics,
        ),
    ],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition of TOPIC.")],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="The record's offset.")],
    reverse: Annotated[bool, typer.Option("--reverse", help="OFFSET is of the target.")] = False,
    style: Annotated[
        Styled,
        typer.Option(
            "--as", metavar="FORM", help="Show keys, values and headers as text, indented JSON or hexadecimal."
        ),
    ] = Styled.TEXT,
    lane: LaneOption = None,
) -> int:
    """Show the record at an offset and its copy on the other side, as a read_committed consumer sees them.

    It prints what applications wrote, which may be personal data. At the source it is as it was before any transform.
    Exit code 1 when a side has no record; the answer has the reason.
    """
    from ferry.features.records.acts.one_record import look_at  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.records.cli.record_form import RECORD_STORY  # noqa: PLC0415 - as above
    from ferry.features.records.rules.page import record_story  # noqa: PLC0415 - as above

    flow = context.flow(lane)
    place = TopicPartition(topic=topic, partition=partition)
    found = look_at(flow, place, offset, backward=reverse, patience_s=context.patience_s)
    story = record_story(found, flow.flow.source, flow.flow.target, style.value)
    context.answer(lambda: RECORD_STORY.dump(story), lambda: _print(story), table=lambda: _print_figures(story))
    return 0 if story.source.record and story.target.record else LACKS


def _print(story: RecordStory) -> None:
    _print_figures(story)
    for side in (story.source, story.target):
        if side.record is None:
            echo(f"{side.cluster} has no record: {_lack(side)}")
    records = [(side.cluster, side.record) for side in (story.source, story.target) if side.record is not None]
    if len(records) > 1:
        differs = f"{', '.join(story.differences)} differ" if story.differences else "both records are the same"
        echo(f"{differs}; the flow has a transform for the topic" if story.transformed else differs)
    for name in ("key", "value"):
        _print_parts(name, [(cluster, getattr(record, name)) for cluster, record in records])
    for cluster, record in records:
        if record.headers and (record is records[0][1] or "headers" in story.differences):
            echo(f"\nheaders, at {cluster}" if "headers" in story.differences else "\nheaders")
            _print_headers(record)


def _print_figures(story: RecordStory) -> None:
    rows: list[list[object]] = []
    for side in (story.source, story.target):
        place, record = side.place, side.record
        row: list[object] = [
            side.cluster,
            place and place.topic,
            place and place.partition,
            side.offset,
            _lack_word(side),
        ]
        if record is None:
            rows.append([*row, None, None, None, None, None])
            continue
        sizes = [record.key.size, record.value.size]
        row += [_when(record), record.stamped_by, *sizes, len(record.headers) + record.more_headers]
        rows.append(row)
    print_table(
        [
            *("cluster", "topic", "partition", "offset", "found"),
            *("timestamp", "type", "key bytes", "value bytes", "headers"),
        ],
        rows,
        right=["partition", "offset", "key bytes", "value bytes", "headers"],
    )


def _lack_word(side: SideText) -> str:
    return "record" if side.lack is None else side.lack.value


def _lack(side: SideText) -> str:
    from ferry.features.records.rules.one_record import SAID  # noqa: PLC0415 - help and completion read no rules

    assert side.lack is not None
    return f"{SAID[side.lack]} ({side.detail})" if side.detail else SAID[side.lack]


def _when(record: RecordText) -> str | None:
    return None if record.timestamp_ms is None else to_the_ms(record.timestamp_ms)


def _print_parts(name: str, parts: list[tuple[str, PartText]]) -> None:
    """Print a part of both records, once if it is shown in the same way."""
    if len(parts) > 1 and parts[0][1] == parts[1][1]:
        parts = [("both sides", parts[0][1])]
    for where, part in parts:
        echo(f"\n{name}, at {where}: {_measured(part)}")
        if part.text:
            echo(part.text)


def _measured(part: PartText) -> str:
    if part.text is None or part.size is None:
        return "null"
    words = [size(part.size), part.style]
    words += [part.note] if part.note else []
    return ", ".join([*words, "its beginning"] if part.is_cut else words)


def _print_headers(record: RecordText) -> None:
    for one in record.headers:
        mark = "* " if one.differs else "  "
        value = "null" if one.value.text is None else one.value.text
        echo(f"{mark}{one.name.text}: {value}")
    if record.more_headers:
        echo(f"  and {record.more_headers} more")
