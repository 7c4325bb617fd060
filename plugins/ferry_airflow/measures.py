"""Values of the trigger forms: lists of names, and sizes and durations with a unit or as a plain number; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ferry.errors import BadInput
from ferry.units import Duration, OutOfRange, Size, Unreadable

MOST_APPROVAL_SECONDS = 7 * 24 * 3600
"""The user who triggers the DAG sets how long an approval may be used: at most this long."""

BYTES = Size(least=1)
RUN_SECONDS = Duration("s", least=1, whole=True)
SECONDS = Duration("s")
APPROVAL_SECONDS = Duration("s", least=1, most=MOST_APPROVAL_SECONDS, whole=True)


def names_of(params: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the names in a field; none for an empty one. Raises BadInput, which names the field, for no list of names.

    A DAG with the task group has params of its own, so its form may not have refused a text.
    """
    given = params.get(name)
    return () if given in (None, [], ()) else checked_names(name, given)


def checked_names(name: str, given: Any) -> tuple[str, ...]:
    """Return the names in an argument or a field; raises BadInput if they are not a list, or if it is empty."""
    is_list = isinstance(given, Collection) and not isinstance(given, (str, bytes, Mapping))
    if not is_list or not given or not all(isinstance(one, str) and one for one in given):
        raise BadInput(f"{name} {given!r} is not a list of names: write [NAME, …], or omit it for all {name}")
    return tuple(given)


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
