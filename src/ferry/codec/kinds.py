"""How one value is written in JSON and read. Reading raises TypeError, ValueError or BadInput for other values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from types import GenericAlias
from typing import Any, get_type_hints

from ferry.codec.schema import Json, described, nullable, object_of, of_type
from ferry.model import Flow


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. None: it is in JSON unchanged, and its schema follows from the type of its attribute."""

    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None
    schema: Callable[[], Json] | None = None
    none: int | None = None
    """The number that is None, where `load` does nothing else: a form reads it without a call."""


PLAIN = Kind()
"""Texts, numbers, and values that are JSON already."""

FLOW = Kind(str, Flow.parse, lambda: of_type(str))
"""A flow, as the text `source->target`."""


SECONDS = Kind(schema=lambda: {"type": "number", "minimum": 0})
"""Seconds with fractions; not below 0."""


def _two(values: Any) -> tuple[Any, Any]:
    first, second = values
    return first, second


PAIR = Kind(list, _two)
"""A tuple of two as an array."""


def _one(values: Any) -> Any:
    (only,) = values
    return only


SINGLE = Kind(lambda value: [value], _one)
"""A value as an array of one."""


def typed(hint: Any, least: int | None = 0) -> Kind:
    """Return the kind of a value that is in JSON unchanged, of a type; whole numbers are not below `least`."""
    return Kind(schema=lambda: of_type(hint, least))


def const(value: Any) -> Kind:
    """Return the kind of a value that is the same in all objects of a form."""
    return Kind(schema=lambda: {"const": value})


def enum(of: type[Enum], *, more: bool = False) -> Kind:
    """Return the kind of an enum member, written as its value. `more`: later versions may have others."""
    return Kind(lambda one: one.value, of, lambda: of_type(str if more else of))


def filled(empty: Any) -> Kind:
    """Return the kind of a value that is null where it is `empty`."""
    return Kind(
        lambda value: None if value == empty else value,
        lambda value: empty if value is None else value,
        lambda: nullable(of_type(type(empty))),
    )


def or_minus_one(least: int | None = -1) -> Kind:
    """Return the kind of a whole number that may be None, which is -1 in JSON; `least` is its minimum in the schema."""
    return Kind(
        lambda value: -1 if value is None else value,
        lambda value: None if value == -1 else value,
        lambda: of_type(int, least),
        none=-1,
    )


def optional(kind: Kind) -> Kind:
    """Return the kind of a value or null."""
    dump, load, schema = kind.dump, kind.load, kind.schema
    return Kind(
        None if dump is None else lambda value: None if value is None else dump(value),
        None if load is None else lambda value: None if value is None else load(value),
        None if schema is None else lambda: nullable(schema()),
    )


def many(kind: Kind = PLAIN) -> Kind:
    """Return the kind of a tuple, written as an array."""
    dump, load, schema = kind.dump, kind.load, kind.schema
    return Kind(
        list if dump is None else lambda values: [dump(one) for one in values],
        tuple if load is None else lambda values: tuple(load(one) for one in values),
        None if schema is None else lambda: {"type": "array", "items": schema()},
    )


def row(of: type[Any], least: int | None = 0) -> Kind:
    """Return the kind of a dataclass of plain fields, written as an array of them in their order."""
    names = tuple(of.__dataclass_fields__)
    get = attrgetter(*names)
    return Kind(
        lambda value: list(get(value)),
        lambda values: of(**dict(zip(names, values, strict=True))),
        lambda: of_type(GenericAlias(tuple, tuple(get_type_hints(of).values())), least),
    )


def fields(of: type[Any], **says: str) -> Kind:
    """Return the kind of a dataclass of plain fields, written as an object.

    `says` describes some of them in the schema.
    """
    names = tuple(of.__dataclass_fields__)

    def schema() -> Json:
        hints = get_type_hints(of)
        return object_of({name: described(of_type(hints[name]), says.get(name)) for name in names})

    return Kind(
        lambda value: {name: getattr(value, name) for name in names},
        lambda body: of(**body),
        schema,
    )


def by_partition(parts: Kind = PLAIN) -> Kind:
    """Return the kind of a mapping by partition number, written as rows: the number, then the parts of the value.

    `parts` is the kind of a value as an array; by default it is a tuple of plain values.
    """
    dump, load = parts.dump or list, parts.load or tuple
    return Kind(
        lambda found: [[number, *dump(value)] for number, value in sorted(found.items())],
        lambda rows: {number: load(rest) for number, *rest in rows},
    )
