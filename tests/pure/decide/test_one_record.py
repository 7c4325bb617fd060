"""A record beside its copy: what is shown of bytes, what differs, and why a side has nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.records.rules.one_record import (
    KEPT_BYTES,
    MOST_HEADERS,
    BothSides,
    Lack,
    OneRecord,
    Part,
    Side,
    StampedBy,
    hole,
    in_gap,
    lack_of,
)
from ferry.features.records.rules.page import OfRecord, RecordStory, record_story
from ferry.features.records.rules.part_text import MOST_CHARACTERS, MOST_DUMPED, Style, indented_json, part_text
from ferry.model import Gap, RefusalKind, Resolution, TopicPartition
from ferry.page.question import answer_type
from ferry.reader.typed import dump, load
from ferry.wire.headers import Header

HERE, THERE = TopicPartition(topic="orders", partition=3), TopicPartition(topic="a.orders", partition=3)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
GAP = Gap(source=HERE, start=5, end=9, why=RefusalKind.STUCK, run="r1", at_ms=1, who="ada@host", reason="corrupt")


def record(
    value: bytes | None = b"v",
    *,
    key: bytes | None = b"k",
    at_ms: int = 1_000,
    stamped_by: StampedBy = StampedBy.CREATE,
    headers: tuple[Header, ...] = (),
) -> OneRecord:
    return OneRecord.of(at_ms, stamped_by, key, value, headers)


def both(one: OneRecord | None, other: OneRecord | None, lack: Lack | None = None) -> BothSides:
    return BothSides(
        source=Side(place=HERE, offset=5, record=one, lack=None if one else lack),
        target=Side(place=THERE, offset=7, record=other, lack=None if other else lack),
        transformed=False,
    )


@given(JSONS, st.sampled_from((None, 1, "\t")))
def test_indented_json_is_the_same_value_and_is_indented_once(value: object, indent: int | str | None) -> None:
    made = indented_json(json.dumps(value, indent=indent))
    assert made is not None
    assert json.loads(made) == value
    assert indented_json(made) == made


def test_json_keeps_how_numbers_names_and_escapes_are_written() -> None:
    text = r'{"a":1.10,"a":1e400,"b":[ ],"c":{},"d":["\u0041,{\"",12345678901234567890]}'
    assert indented_json(text) == (
        '{\n  "a": 1.10,\n  "a": 1e400,\n  "b": [],\n  "c": {},\n'
        '  "d": [\n    "\\u0041,{\\"",\n    12345678901234567890\n  ]\n}'
    )


@pytest.mark.parametrize("text", ["", "{", "NaN", "{'a': 1}", "01", "[" * 100_000, "[" * 300 + "]" * 300, '"a" "b"'])
def test_what_is_not_json_or_too_deep_is_not_indented(text: str) -> None:
    assert indented_json(text) is None


def test_null_is_not_an_empty_value() -> None:
    tombstone, empty = (part_text(Part.of(data), "text") for data in (None, b""))
    assert (tombstone.text, tombstone.size) == (None, None)
    assert (empty.text, empty.size) == ("", 0)
    assert both(record(None), record(b"")).differences == ("value",)
    assert both(record(None), record(None)).differences == ()


def test_bytes_that_do_not_fit_a_form_have_the_next_one_and_say_so() -> None:
    as_json, not_utf8 = part_text(Part.of(b"plain"), "json"), part_text(Part.of(b"\xff\xfe"), "json")
    assert (as_json.style, as_json.text, bool(as_json.note)) == ("text", "plain", True)
    assert (not_utf8.style, bool(not_utf8.note)) == ("hex", True)
    asked = part_text(Part.of(b"{}"), "json")
    assert (asked.style, asked.text, asked.note) == ("json", "{}", "")
    assert part_text(Part.of(b"abc"), "hex").text == f"00000000  {'61 62 63':<23}  {'':<23}  |abc|"


@pytest.mark.parametrize(
    ("data", "style", "is_cut"),
    [
        (b"x" * MOST_CHARACTERS, "text", False),
        (b"x" * (MOST_CHARACTERS + 1), "text", True),
        ("€".encode() * KEPT_BYTES, "text", True),  # the last character is cut in two
        (b"x" * MOST_DUMPED, "hex", False),
        (b"x" * (MOST_DUMPED + 1), "hex", True),
        (b'"' + b"x" * MOST_CHARACTERS + b'"', "json", True),
        (b'"' + b"x" * KEPT_BYTES + b'"', "json", True),
    ],
)
def test_a_large_value_is_cut_and_has_its_size(data: bytes, style: str, is_cut: bool) -> None:
    part = Part.of(data)
    found = part_text(part, style)  # type: ignore[arg-type]
    assert part.data is not None
    assert len(part.data) <= KEPT_BYTES
    assert (found.size, found.is_cut) == (len(data), is_cut)
    assert found.text is not None
    assert len(found.text) <= max(MOST_CHARACTERS, 5 * MOST_DUMPED)


def test_what_differs_after_the_kept_bytes_is_found() -> None:
    one, other = (record(b"x" * KEPT_BYTES + last) for last in (b"a", b"b"))
    assert both(one, other).differences == ("value",)
    many: tuple[Header, ...] = tuple((b"h", b"%d" % at) for at in range(MOST_HEADERS + 1))
    one, other = (record(headers=headers) for headers in (many, (*many[:-1], (b"h", None))))
    assert both(one, other).differences == ("headers",)
    assert (len(one.headers), one.more_headers) == (MOST_HEADERS, 1)


@pytest.mark.parametrize("style", ["text", "json"])
def test_characters_that_steer_a_terminal_or_turn_text_are_escaped_and_lines_stay(style: Style) -> None:
    data = "a\n\tb€\x1b[31m\u202e\x00\r".encode()
    assert part_text(Part.of(data), style).text == "a\n\tb€\\x1b[31m\\u202e\\x00\\r"


def test_headers_differ_by_their_position() -> None:
    one = record(headers=((b"a", b"1"), (b"\xff", b"\xfe"), (b"c", None)))
    other = record(headers=((b"a", b"1"), (b"\xff", b"\xfd"), (b"c", b""), (b"d", b"1")))
    story = record_story(both(one, other), "a", "b", "text")
    assert story.differences == ("headers",)
    assert story.source.record is not None
    assert story.target.record is not None
    assert [header.differs for header in story.source.record.headers] == [False, True, True]
    assert [header.differs for header in story.target.record.headers] == [False, True, True, True]
    assert [header.name.style for header in story.source.record.headers] == ["text", "hex", "text"]


@pytest.mark.parametrize(
    ("stamped_by", "differs"), [(StampedBy.CREATE, True), (StampedBy.NONE, True), (StampedBy.APPEND, False)]
)
def test_a_time_that_the_broker_sets_is_no_difference(stamped_by: StampedBy, differs: bool) -> None:
    one, other = record(at_ms=1), record(at_ms=2, stamped_by=stamped_by)
    assert both(one, other).differences == (("timestamp",) if differs else ())
    assert record(at_ms=-1).timestamp_ms is None


@pytest.mark.parametrize(("one", "other"), [(record(), None), (None, record()), (None, None)])
def test_nothing_differs_where_a_side_has_no_record(one: OneRecord | None, other: OneRecord | None) -> None:
    assert both(one, other, Lack.NOT_KNOWN).differences == ()


def test_each_translation_has_its_reason() -> None:
    words = ("gap", "ahead", "before", "approximate", "log-start")
    found = {word: lack_of(word) for word in words}
    assert None not in found.values()
    assert len(set(found.values())) == len(words)
    assert lack_of("exact") is None
    assert lack_of("exact", read_all=True) is Lack.NOT_COPIED
    assert lack_of("before", pruned=True) is Lack.PRUNED


def test_a_gap_has_the_reason_that_is_known() -> None:
    marker, there = Side(place=HERE, offset=5, lack=Lack.CONTROL), Side(place=HERE, offset=5, record=record())

    def why(asked: Side, lack: Lack, gap: Gap | None = None, *, transformed: bool = False) -> Lack:
        return in_gap(asked, lack, gap, transformed=transformed)[0]

    assert why(marker, Lack.LEFT_OUT) is Lack.LEFT_OUT
    assert why(there, Lack.LEFT_OUT) is Lack.NOT_KNOWN
    assert why(there, Lack.LEFT_OUT, transformed=True) is Lack.LEFT_OUT
    assert why(there, Lack.LEFT_OUT, GAP) is Lack.SKIPPED
    assert why(there, Lack.NOT_COPIED, GAP) is Lack.SKIPPED
    assert why(there, Lack.NOT_COPIED, replace(GAP, how=Resolution.RESTART)) is Lack.NOT_COPIED
    assert why(there, Lack.DELETED, GAP) is Lack.DELETED
    detail = in_gap(there, Lack.LEFT_OUT, GAP, transformed=False)[1]
    assert all(known in detail for known in (GAP.run, GAP.who, GAP.reason))


@pytest.mark.parametrize(
    ("policy", "lack"),
    [
        ("compact", Lack.COMPACTED),
        ("compact,delete", Lack.COMPACTED),
        ("delete", Lack.NOT_KNOWN),
        (None, Lack.NOT_KNOWN),
    ],
)
def test_only_a_compacted_log_explains_a_hole(policy: str | None, lack: Lack) -> None:
    assert hole(policy)[0] is lack


def test_the_answer_passes_between_the_page_and_its_reader() -> None:
    one = record(None, headers=((b"\xff", None),))
    for found in (both(one, None, Lack.ABORTED), both(one, record(b"{}"))):
        story = record_story(found, "a", "b", "json")
        body = json.loads(json.dumps(dump(answer_type(OfRecord), story)))
        assert load(RecordStory, body) == story
