"""Values of the trigger forms: flags, lists of names, numbers, and sizes and durations, also with a unit; pure.

A DAG with the task group has params of its own, so its form may not have refused a value of another type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ferry.errors import BadInput
from ferry.units import LONG_MAX, Duration, OutOfRange, Size, Unreadable

MOST_APPROVAL_SECONDS = 7 * 24 * 3600
"""The user who triggers the DAG sets how long an approval may be used: at most this long."""

BYTES = Size(least=1)
RUN_SECONDS = Duration("s", least=1, whole=True)
SECONDS = Duration("s")
APPROVAL_SECONDS = Duration("s", least=1, most=MOST_APPROVAL_SECONDS, whole=True)


def names_of(params: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the names in a field; none for an empty one. Raises BadInput, which names the field, for anything else."""
    given = params.get(name)
    return () if given in (None, [], ()) else checked_names(name, given)


def checked_names(name: str, given: Any) -> tuple[str, ...]:
    """Return the names in an argument or a field; raises BadInput if they are not a list, or if it is empty."""
    is_list = isinstance(given, Collection) and not isinstance(given, (str, bytes, Mapping))
    if not is_list or not given or not all(isinstance(one, str) and one for one in given):
        raise BadInput(f"{name} {given!r} is not a list of names: write [NAME, …], or omit it for all {name}")
    return tuple(given)


def flag_of(params: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    """Return a field that is true or false; the default for an empty one, or one that the form does not have.

    Raises BadInput, which names the field, for anything else: the text False would count as true.
    """
    given = params.get(name)
    if given is None:
        return default
    if not isinstance(given, bool):
        raise BadInput(f"{name} {given!r} is not true or false: write one of them, without quotation marks")
    return given


def whole_of(params: Mapping[str, Any], name: str, *, least: int = 1) -> int | None:
    """Return the whole number in a field; None for an empty one. Raises BadInput, which names the field."""
    given = params.get(name)
    if given is None:
        return None
    text = str(int(given)) if isinstance(given, float) and given.is_integer() else str(given)
    is_number = re.fullmatch("[0-9]{1,19}", text) is not None and not isinstance(given, bool)
    if not is_number or not least <= int(text) <= LONG_MAX:
        raise BadInput(
            f"{name} {given!r:.40} is not a whole number from {least} to {LONG_MAX}: write one, or leave it empty"
        )
    return int(text)


def size_of(params: Mapping[str, Any], name: str) -> Any:
    """Return the bytes of a field; None for an empty one. Raises BadInput, which names the field."""
    return _read(params, name, BYTES)


def seconds_of(params: Mapping[str, Any], name: str, reader: Duration = SECONDS) -> Any:
    """Return the seconds of a field; None for an empty one, or one that the form does not have.

    Raises BadInput, which names the field.
    """
    return _read(params, name, reader)


def _read(params: Mapping[str, Any], name: str, reader: Size | Duration) -> Any:
    given = params.get(name)
    if given is None:
        return None
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    try:
        return reader(str(given))
    except (Unreadable, OutOfRange) as error:
        raise BadInput(f"{name}: {error}") from None
