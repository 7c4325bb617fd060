"""One guard for every record of the ledger that is read: it is in Ferry's form, or one BadInput names its offset.

Any principal with WRITE on the ledger can write anything to it. A key that is not Ferry's means nothing
(`ferry.ledger.codec.decode_key`). Under a key of Ferry's, a value that is not in Ferry's form stops the reader, because
that record may decide what was copied.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ferry.errors import MALFORMED, BadInput
from ferry.ledger.codec import REMEDY, Json, decode_value
from ferry.model import LedgerRecord, Sentence
from ferry.model.run import MOST_SLOTS

T = TypeVar("T")
Check = Callable[[Any], bool]

_WRONG = (*MALFORMED, BadInput)
"""The errors of parsing when a field is missing, or of another kind."""
_LEAST, _MOST = -(2**63), 2**63 - 1


def read_as(record: LedgerRecord, parse: Callable[[Json], T]) -> T:
    """Return a record's value as `parse` reads it.

    Raises BadInput when it is not in Ferry's form, or of a newer format.
    """
    where = f"ledger record at offset {record.offset}"
    if record.value is None:
        raise BadInput(f"{where} has no value")
    body = decode_value(record.value, where)
    try:
        found = parse(body)
        checked(found)
    except _WRONG as error:
        raise BadInput(wrong(where, record.key, error)) from error
    return found


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise BadInput for errors in what several records make together: a plan, a summary, a switch."""
    try:
        yield
    except _WRONG as error:
        if isinstance(error, BadInput) and "ledger" in str(error):  # it has named the place and the remedy
            raise
        raise BadInput(wrong(what, b"", error)) from error


def checked(found: T) -> T:
    """Return `found` itself. Raises TypeError when a field is not of its declared kind."""
    if not _conforms(found):
        raise TypeError(_wrong_field(found))
    return found


def wrong(where: str, key: bytes, error: BaseException) -> str:
    """Return the message that a record is not in Ferry's form, with the remedy."""
    of = f" with key {key[:80].decode(errors='replace')}" if key else ""
    why = str(error) if isinstance(error, BadInput) else f"{type(error).__name__}: {error}"
    return f"{where}{of} is not as Ferry writes it ({why[:200]}): {REMEDY}"


def whole(value: object) -> int:
    """Return a whole number of 64 bits. Raises TypeError for anything else."""
    if isinstance(value, int) and is_whole_number(value):
        return value
    raise TypeError(f"{value!r:.40} is not a whole number of 64 bits")


def slots(value: object) -> int:
    """Return a number of slots. Raises TypeError for anything else.

    Each slot is fenced by its name, so the fencing of a huge number would never end.
    """
    if 0 <= whole(value) <= MOST_SLOTS:
        return whole(value)
    raise TypeError(f"{value!r:.40} is not a number of slots")


def is_whole_number(value: object) -> bool:
    """Return whether a value is a whole number of 64 bits."""
    return isinstance(value, int) and _LEAST <= value <= _MOST


def text(value: object) -> str:
    """Return a text. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _conforms(found: object) -> bool:
    if not dataclasses.is_dataclass(found):
        return True
    kind: Any = type(found)
    return _check_of(kind)(found)


def _wrong_field(found: Any) -> str:
    """Return which field of a record that does not conform is of another kind, with its value."""
    hints = get_type_hints(type(found))
    for name in _names_of(type(found)):
        value, check = getattr(found, name), _check_of(hints[name])
        if not check(value) or (hints[name] is int and isinstance(value, bool)):
            if isinstance(value, dict):
                value = {key: one for key, one in value.items() if not check({key: one})}
            inner = type(value) is hints[name] and _names_of(hints[name])
            return _wrong_field(value) if inner else f"{name} of {type(found).__name__} is {value!r:.40}"
    return f"a field of {type(found).__name__} is of another kind"


_PLAIN: dict[Any, Check] = {
    Any: lambda _: True,
    int: is_whole_number,
    float: lambda value: isinstance(value, int | float),
    None: lambda value: value is None,
    types.NoneType: lambda value: value is None,
}


@cache
def _check_of(hint: Any) -> Check:
    """Return the check of a declared kind."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is not None:
        return _check_of_parts(hint)
    if _names_of(hint):
        return _check_of_fields(hint)
    return lambda value: isinstance(value, hint)


def _check_of_parts(hint: Any) -> Check:
    """Return the check of a kind that is made of other kinds."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda value: value in arguments
    if origin in (Union, types.UnionType):
        either = [_check_of(one) for one in arguments]
        return lambda value: any(check(value) for check in either)
    if origin is tuple and arguments[1:] != (...,):
        each = [_check_of(one) for one in arguments]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(each)
            and all(check(one) for check, one in zip(each, value, strict=True))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of_key, of_value = (_check_of(one) for one in arguments)
        return lambda value: (
            isinstance(value, origin) and all(of_key(one) and of_value(other) for one, other in value.items())
        )
    of_one = _check_of(arguments[0])
    return lambda value: isinstance(value, origin) and all(of_one(one) for one in value)


def _names_of(hint: Any) -> tuple[str, ...]:
    """Return the fields of a dataclass or named tuple; none of anything else."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return tuple(one.name for one in dataclasses.fields(hint))
    if isinstance(hint, type) and issubclass(hint, tuple):
        return tuple(getattr(hint, "_fields", ()))
    return ()


def _flat(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of a record and of the records in it, by their dotted names."""
    hints = get_type_hints(kind)
    for name in _names_of(kind):
        if _names_of(hints[name]):
            yield from _flat(hints[name], f"{prefix}{name}.")
        else:
            yield prefix + name, hints[name]


def _check_of_fields(kind: type) -> Check:
    """Return the check of a record of named fields.

    Fields of simple kinds are checked by their types at once, for speed.
    """
    hints = dict(_flat(kind))
    simple = tuple(name for name in hints if hints[name] in (int, str, bool, bytes) or _is_enum(hints[name]))
    others = [(attrgetter(name), _check_of(hints[name])) for name in hints if name not in simple]
    wanted = tuple(hints[name] for name in simple)
    types_of, numbers_of = _getter(simple), _getter(tuple(name for name in simple if hints[name] is int))

    def check(value: Any) -> bool:
        if not isinstance(value, kind) or not _are(tuple(map(type, types_of(value))), wanted):
            return False
        found = numbers_of(value)
        if found and not (min(found) >= _LEAST and max(found) <= _MOST):
            return False
        return all(of_one(get(value)) for get, of_one in others)

    return check


def _are(found: tuple[type, ...], wanted: tuple[type, ...]) -> bool:
    return found == wanted or tuple(str if one is Sentence else one for one in found) == wanted


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _: ()
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda value: (get(value),)
    return attrgetter(*names)
