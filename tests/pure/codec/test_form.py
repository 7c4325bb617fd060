"""A form writes and reads a dataclass; what is missing or of another kind is an error that says so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, enum, fields, many, optional, row
from ferry.errors import BadInput
from ferry.model import Flow, TopicPartition


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Span:
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Thing:
    flow: Flow
    place: TopicPartition
    spans: tuple[Span, ...]
    whole: Span
    colour: Colour
    age: Span | None = None
    note: str = ""
    lane: str = ""


FORM = Form(
    Thing,
    F("flow", kind=FLOW),
    F("topic", "place.topic"),
    F("partition", "place.partition"),
    F("spans", kind=many(row(Span))),
    F("whole", kind=fields(Span)),
    F("colour", kind=enum(Colour), default=Colour.RED),
    F("age_ms", "age", optional(row(Span)), default=None),
    F("note", default="", omit=lambda thing: not thing.note),
)
THING = Thing(
    flow=Flow.parse("a->b"),
    place=TopicPartition("orders", 3),
    spans=(Span(start=1, end=2), Span(start=5, end=9)),
    whole=Span(start=1, end=9),
    colour=Colour.BLUE,
    age=Span(start=7, end=8),
    lane="live",
)
BODY: dict[str, Any] = {
    "flow": "a->b",
    "topic": "orders",
    "partition": 3,
    "spans": [[1, 2], [5, 9]],
    "whole": {"start": 1, "end": 9},
    "colour": "blue",
    "age_ms": [7, 8],
}


def test_a_value_is_written_and_read() -> None:
    assert FORM.dump(THING) == BODY
    assert FORM.load(BODY, lane="live") == THING


def test_what_earlier_versions_do_not_have_has_its_default() -> None:
    earlier = {name: value for name, value in BODY.items() if name not in ("colour", "age_ms")}
    found = FORM.load({**earlier, "of a newer one": 1})
    assert (found.colour, found.age, found.note) == (Colour.RED, None, "")


@pytest.mark.parametrize("body", ["text", ["flow"], None, 7], ids=repr)
def test_what_is_no_object_is_an_error_also_where_all_fields_have_defaults(body: Any) -> None:
    form = Form(Span, F("start", default=0), F("end", default=0))
    assert form.load({}) == Span(start=0, end=0)
    with pytest.raises(TypeError, match="is no object"):
        form.load(body)


def test_a_closed_form_takes_no_field_that_it_does_not_have() -> None:
    form = Form(Span, F("start"), F("end"), closed=True)
    assert form.load({"start": 1, "end": 2}) == Span(start=1, end=2)
    with pytest.raises(TypeError, match="step"):
        form.load({"start": 1, "end": 2, "step": 3})


@pytest.mark.parametrize("name", ["flow", "topic", "spans", "whole"])
def test_a_field_that_is_missing_is_an_error(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        FORM.load({key: value for key, value in BODY.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("flow", "nowhere"),
        ("spans", [[1]]),
        ("spans", [[1, 2, 3]]),
        ("spans", 7),
        ("whole", {"start": 1}),
        ("colour", ""),
    ],
)
def test_a_field_of_another_kind_is_an_error(name: str, value: object) -> None:
    with pytest.raises((TypeError, ValueError, BadInput)):
        FORM.load({**BODY, name: value})
