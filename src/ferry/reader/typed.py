"""Values as JSON and back, by the types of their fields: the exchange between the page and its reader; pure.

Reading makes only values of the named types, so no document can create or call anything else.
"""

from __future__ import annotations

import base64
import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ferry.errors import MALFORMED, Corrupt

Way = Callable[[Any], Any]
"""From a value to JSON, or back."""


def dump(hint: Any, value: Any) -> Any:
    """Return a value of the type `hint` as JSON: numbers, texts, lists and objects."""
    return _ways(hint)[0](value)


def load(hint: Any, body: Any) -> Any:
    """Return the value of the type `hint` that is in JSON; raises Corrupt if it is none."""
    try:
        return _ways(hint)[1](body)
    except MALFORMED as error:
        raise Corrupt(f"what came is not a {getattr(hint, '__name__', hint)}: {type(error).__name__} {error}") from None


def _same(value: Any) -> Any:
    return value


@cache
def _ways(hint: Any) -> tuple[Way, Way]:
    """Return the functions that write and read values of a type."""
    origin, parts = get_origin(hint), get_args(hint)
    of = origin or hint
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin in (Union, types.UnionType):
        return _union(parts)
    if origin is Literal:
        return _same, _one_of(parts)
    if dataclasses.is_dataclass(of):
        return _object(of, parts)
    return _of_class(of, parts)


def _of_class(of: Any, parts: tuple[Any, ...]) -> tuple[Way, Way]:
    """Return the functions for types that are made of other types, and for enumerations."""
    if issubclass(of, Enum):
        return attrgetter("value"), of
    if hasattr(of, "_fields"):  # a named tuple
        return _row(tuple(get_type_hints(of).values()), lambda values: of(*values))
    if issubclass(of, Mapping):
        return _by_name(parts[1])
    if issubclass(of, Sequence):
        return _row(parts, tuple) if of is tuple and parts[1:] != (...,) else _many(parts[0])
    raise TypeError(f"values of {of} have no form")


def _exactly(of: type[Any]) -> Way:
    def load_it(body: Any) -> Any:
        if type(body) is not of:
            raise TypeError(f"{body!r:.40} is not a {of.__name__}")
        return body

    return load_it


def _number(body: Any) -> float:
    if type(body) not in (int, float):
        raise TypeError(f"{body!r:.40} is not a number")
    return float(body)


def _one_of(values: tuple[Any, ...]) -> Way:
    def load_it(body: Any) -> Any:
        if body not in values:
            raise ValueError(f"{body!r:.40} is none of {values}")
        return body

    return load_it


def _union(parts: tuple[Any, ...]) -> tuple[Way, Way]:
    """Return the functions for one type or None, or for plain types."""
    rest = [part for part in parts if part is not types.NoneType]
    if len(rest) == 1:
        write, read = _ways(rest[0])
        return (lambda value: None if value is None else write(value)), (
            lambda body: None if body is None else read(body)
        )
    if not all(part in (int, str, bool) for part in rest):
        raise TypeError(f"values of {parts} have no form")

    def load_it(body: Any) -> Any:
        if type(body) not in parts:
            raise TypeError(f"{body!r:.40} is none of {parts}")
        return body

    return _same, load_it


def _object(of: Any, given: tuple[Any, ...]) -> tuple[Way, Way]:
    """Return the functions for a dataclass as an object of its fields; `given` are the types of a generic one."""
    known = dict(zip(getattr(of, "__parameters__", ()), given, strict=True))
    hints = get_type_hints(of)
    ways = {one.name: _ways(_filled(hints[one.name], known)) for one in dataclasses.fields(of)}
    writes = [(name, write) for name, (write, _) in ways.items()]
    reads = [(name, read) for name, (_, read) in ways.items()]

    def load_it(body: Any) -> Any:
        if type(body) is not dict or body.keys() != ways.keys():
            raise TypeError(f"{body!r:.40} has not the fields of {of.__name__}")
        return of(**{name: read(body[name]) for name, read in reads})

    return (lambda value: {name: write(getattr(value, name)) for name, write in writes}), load_it


def _filled(hint: Any, known: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return known[hint]
    open_ones = getattr(hint, "__parameters__", ())
    return hint[tuple(known[one] for one in open_ones)] if open_ones else hint


def _row(parts: tuple[Any, ...], made: Way) -> tuple[Way, Way]:
    """Return the functions for values of different types in a list."""
    ways = [_ways(part) for part in parts]
    return (
        lambda values: [write(one) for (write, _), one in zip(ways, values, strict=True)],
        lambda body: made([read(one) for (_, read), one in zip(ways, body, strict=True)]),
    )


def _many(part: Any) -> tuple[Way, Way]:
    write, read = _ways(part)

    def load_it(body: Any) -> Any:
        if type(body) is not list:
            raise TypeError(f"{body!r:.40} is not a list")
        return tuple([read(one) for one in body])

    return (lambda values: [write(one) for one in values]), load_it


def _by_name(part: Any) -> tuple[Way, Way]:
    write, read = _ways(part)
    return (
        lambda values: {name: write(one) for name, one in values.items()},
        lambda body: {_exactly(str)(name): read(one) for name, one in body.items()},
    )


_PLAIN: Mapping[Any, tuple[Way, Way]] = {
    Any: (_same, _same),  # what is JSON already
    **{of: (_same, _exactly(of)) for of in (int, str, bool, types.NoneType)},
    float: (_same, _number),
    bytes: (lambda value: base64.b64encode(value).decode(), base64.b64decode),
}
