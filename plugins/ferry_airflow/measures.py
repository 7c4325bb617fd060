"""Sizes and durations of the trigger forms: with a unit, as options and keys take them, or as a plain number; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.errors import BadInput
from ferry.units import Duration, OutOfRange, Size, Unreadable

MOST_APPROVAL_SECONDS = 7 * 24 * 3600
"""The user who triggers the DAG sets how long an approval may be used: at most this long."""

BYTES = Size(least=1)
RUN_SECONDS = Duration("s", least=1, whole=True)
SECONDS = Duration("s")
APPROVAL_SECONDS = Duration("s", least=1, most=MOST_APPROVAL_SECONDS, whole=True)


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
