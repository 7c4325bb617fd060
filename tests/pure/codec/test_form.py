"""A form writes and reads a dataclass; what is missing or of another kind is an error that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

import pytest
from jsonschema import Draft202012Validator

from ferry.codec.form import F, Form
from ferry.codec.kinds import (
    FLOW,
    SECONDS,
    SINGLE,
    Kind,
    by_partition,
    const,
    enum,
    fields,
    filled,
    many,
    optional,
    row,
    typed,
)
from ferry.errors import BadInput
from ferry.model import Flow, TopicPartition
from tests.golden import Golden


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
def test_what_is_no_object_is_an_error_also_where_all_fields_have_defaults(body: Any, golden: Golden) -> None:
    form = Form(Span, F("start", default=0), F("end", default=0))
    assert form.load({}) == Span(start=0, end=0)
    with pytest.raises(TypeError) as caught:
        form.load(body)
    golden(caught.value)


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


def test_a_field_that_a_function_makes_is_written_and_not_read() -> None:
    form = Form(
        Span, F("kind", lambda _: "span", const("span")), F("start"), F("end"), F("long", lambda it: it.end > 9)
    )
    assert form.dump(Span(start=1, end=2)) == {"kind": "span", "start": 1, "end": 2, "long": False}
    assert form.load({"start": 1, "end": 2, "kind": "another", "long": True}) == Span(start=1, end=2)


def test_an_empty_value_may_be_null() -> None:
    form = Form(Span, F("start", kind=filled(0)), F("end"))
    assert form.dump(Span(start=0, end=2)) == {"start": None, "end": 2}
    assert form.load({"start": None, "end": 2}) == Span(start=0, end=2)
    assert form.load({"start": 3, "end": 4}) == Span(start=3, end=4)


@dataclass(frozen=True, kw_only=True)
class Box:
    thing: Thing
    colours: tuple[Colour, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    weight: float | None = None

    @property
    def is_heavy(self) -> bool:
        return self.weight is not None and self.weight > 9


BOX = Form(
    Box,
    *FORM.within("thing"),
    F("kind", lambda _: "box", const("box"), says="what it is"),
    F("colours", kind=many(enum(Colour))),
    F("sizes"),
    F("weight"),
    F("heavy", "is_heavy"),
    F("side", lambda _: "left", typed(Literal["left", "right"])),
    F("first", "thing.whole", Form(Span, F("start", least=-1), F("end", kind=SECONDS), name="extent").kind),
    F("pair", "thing.whole", fields(Span, end="where it ends")),
)


def test_fields_of_a_value_within_another_are_those_that_it_has_alone() -> None:
    assert BOX.dump(Box(thing=THING)).items() >= BODY.items()
    noted = replace(THING, note="fragile")
    assert BOX.dump(Box(thing=noted))["note"] == FORM.dump(noted)["note"] == "fragile"
    assert "note" not in BOX.dump(Box(thing=THING))
    form = Form(Span, F("long", lambda span: span.end > 8))
    assert Form(Thing, *form.within("whole")).dump(THING) == {"long": True}


@dataclass(frozen=True, kw_only=True)
class Line:
    span: Span
    name: str


def test_fields_of_a_value_within_another_are_read() -> None:
    form = Form(Line, *Form(Span, F("start"), F("end", default=9)).within("span"), F("name"))
    assert form.load({"start": 1, "name": "x"}) == Line(span=Span(start=1, end=9), name="x")


def test_a_form_says_its_schema() -> None:
    whole = {"type": "integer", "minimum": 0}
    two = {"prefixItems": [whole, whole], "minItems": 2, "maxItems": 2}
    found = BOX.schema()
    assert (found["title"], found["type"]) == ("box", "object")
    assert found["required"] == [name for name in found["properties"] if name != "note"]
    assert found["properties"] == {
        "flow": {"type": "string"},
        "topic": {"type": "string"},
        "partition": whole,
        "spans": {"type": "array", "items": {"type": "array", **two}},
        "whole": {"type": "object", "required": ["start", "end"], "properties": {"start": whole, "end": whole}},
        "colour": {"enum": ["red", "blue"]},
        "age_ms": {"type": ["array", "null"], **two},
        "note": {"type": "string"},
        "kind": {"const": "box", "description": "what it is"},
        "colours": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "sizes": {"type": "object", "additionalProperties": whole},
        "weight": {"type": ["number", "null"]},
        "heavy": {"type": "boolean"},
        "side": {"enum": ["left", "right"]},
        "first": {
            "title": "extent",
            "type": "object",
            "required": ["start", "end"],
            "properties": {"start": {"type": "integer", "minimum": -1}, "end": {"type": "number", "minimum": 0}},
        },
        "pair": {
            "type": "object",
            "required": ["start", "end"],
            "properties": {"start": whole, "end": {**whole, "description": "where it ends"}},
        },
    }


def test_what_a_form_writes_is_as_its_schema_says() -> None:
    Draft202012Validator.check_schema(BOX.schema())
    body = BOX.dump(Box(thing=THING, colours=(Colour.RED,), sizes={"a": 1}, weight=1.5))
    Draft202012Validator(BOX.schema()).validate(body)


def test_null_is_in_the_schema_of_what_may_be_null() -> None:
    form = Form(
        Box,
        F("a", lambda _: None, optional(FORM.kind)),
        F("b", lambda _: None, optional(enum(Colour))),
        F("c", lambda _: None, optional(enum(Colour, more=True))),
        F("d", lambda _: None, filled("")),
        F("e", lambda _: None, typed(Any)),
        F("f", lambda _: None, typed(int | None, least=None)),
    )
    properties = form.schema()["properties"]
    assert properties.pop("a") == {"anyOf": [FORM.schema(), {"type": "null"}]}
    assert properties == {
        "b": {"enum": ["red", "blue", None]},
        "c": {"type": ["string", "null"]},
        "d": {"type": ["string", "null"]},
        "e": {},
        "f": {"type": ["integer", "null"]},
    }


@pytest.mark.parametrize(
    ("kind", "value", "rows"),
    [
        (by_partition(), {3: (7, 8), 0: (1, 2)}, [[0, 1, 2], [3, 7, 8]]),
        (by_partition(SINGLE), {1: 512, 0: 40}, [[0, 40], [1, 512]]),
        (by_partition(row(Span)), {2: Span(start=1, end=9)}, [[2, 1, 9]]),
    ],
    ids=["tuples", "numbers", "dataclasses"],
)
def test_values_by_partition_are_rows_in_the_order_of_the_partitions(
    kind: Kind, value: Mapping[int, Any], rows: list[list[int]]
) -> None:
    assert kind.dump is not None
    assert kind.load is not None
    assert kind.dump(value) == rows
    assert kind.load(rows) == value


@pytest.mark.parametrize("rows", [[[0]], [[0, 1, 2]], [0], [[[0], 1]], 5], ids=str)
def test_rows_by_partition_of_another_form_are_an_error(rows: Any) -> None:
    load = by_partition(SINGLE).load
    assert load is not None
    with pytest.raises((TypeError, ValueError)):
        load(rows)
