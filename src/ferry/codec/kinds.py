"""How one value is written in JSON and read. Reading raises TypeError, ValueError or BadInput for what it is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

from ferry.model import Flow


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value. None: it is in JSON as it is."""

    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None


PLAIN = Kind()
"""Texts, numbers, and what is JSON already."""

FLOW = Kind(str, Flow.parse)
"""`source->target`."""


def _two(values: Any) -> tuple[Any, Any]:
    first, second = values
    return first, second


PAIR = Kind(list, _two)
"""A tuple of two as an array."""


def enum(of: type[Enum]) -> Kind:
    """A member by its value."""
    return Kind(lambda one: one.value, of)


def optional(kind: Kind) -> Kind:
    """A value or null."""
    dump, load = kind.dump, kind.load
    return Kind(
        None if dump is None else lambda value: None if value is None else dump(value),
        None if load is None else lambda value: None if value is None else load(value),
    )


def many(kind: Kind = PLAIN) -> Kind:
    """A tuple as an array."""
    dump, load = kind.dump, kind.load
    return Kind(
        list if dump is None else lambda values: [dump(one) for one in values],
        tuple if load is None else lambda values: tuple(load(one) for one in values),
    )


def row(of: type[Any]) -> Kind:
    """A dataclass of plain fields as an array of them, in their order."""
    names = tuple(of.__dataclass_fields__)
    get = attrgetter(*names)

    made: Callable[..., Any] = eval(
        f"lambda {', '.join(names)}: of({', '.join(f'{one}={one}' for one in names)})", {"of": of}
    )
    return Kind(lambda value: list(get(value)), lambda values: made(*values))


def fields(of: type[Any]) -> Kind:
    """A dataclass of plain fields as an object of them."""
    names = tuple(of.__dataclass_fields__)
    return Kind(lambda value: {name: getattr(value, name) for name in names}, lambda body: of(**body))
