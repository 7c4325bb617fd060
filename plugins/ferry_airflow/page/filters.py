"""Figures in readable form; filters of the templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from ferry.words import date_of, on_page, thousands, to_the_ms

NOTHING = "\u2013"
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")
_STEP = 1000
_TEN = 10
_SHORTEST = 0.1
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_ID = (
    r"(?:[a-z]+(?:_[a-z]+)*__\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:[+-]\d\d:\d\d|Z)?(?:_[\w.:+-]*\w)?"
    r"|[a-z]+-\d{8}T\d{6}Z-[0-9a-f]{4})(?:~\d+)?"
)
"""Ids of runs that Airflow or the command line made of a kind and a time; with the number of a part of a backfill."""
_MADE = re.compile(_ID)
_PARTS = re.compile(
    r"(?P<kind>[a-z_]+?)(?:__|-)(?P<time>\d{4}-?\d\d-?\d\dT[\d:]+(?:\.\d+)?(?:[+-]\d\d:\d\d|Z)?).*?(?P<part>~\d+)?"
)
_VERBATIM = r"`[^`]*`|(?<!\w)'[^']*'|\"[^\"]*\"|--[a-z-]+[ =](?![`'\"-])\S+|\bferry [a-z]+ abandon '[^']*' \S+"
"""Parts of a sentence that people copy: quotes, options of commands, and the command with an id that has no option."""
_ALONE = (r"(?<![\w.@/=~-])", r"(?![\w@/~+-]|[.:]\w)")
"""What is before and after an id that does not belong to another name, such as a topic's."""


def number(value: int | None) -> str:
    """Return a number with a thin gap between thousands."""
    return NOTHING if value is None else thousands(value)


def counted(value: int, one: str, more: str = "") -> str:
    """Return a number of things: of one, or of several; `more` if the plural is not the word with an s."""
    return f"{number(value)} {one if value == 1 else more or one + 's'}"


def size(value: float | None) -> str:
    """Return bytes in the unit that leaves three digits."""
    if value is None:
        return NOTHING
    left, unit = float(value), 0
    while left >= _STEP and unit < len(_SIZES) - 1:
        left, unit = left / _STEP, unit + 1
    return f"{left:.0f} {_SIZES[unit]}" if unit == 0 or left >= _TEN * _TEN else f"{left:.3g} {_SIZES[unit]}"


def duration(seconds: float | None) -> str:
    """Return a time in its two largest units; one that is too short for them is not 0."""
    if seconds is None:
        return NOTHING
    if 0 < seconds < _SHORTEST:
        return f"under {_SHORTEST} s"
    if seconds < _TEN:
        return f"{seconds:.1f} s" if seconds else "0 s"
    left = int(seconds)
    parts: list[str] = []
    for length, unit in _UNITS:
        count, left = divmod(left, length)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)


def iso(ms: int | None) -> str:
    """Return a time as ISO 8601, for programs; empty: it is not known, or no calendar has it."""
    return "" if not ms or ms < 0 or date_of(ms) is None else to_the_ms(ms)


def moment(ms: int | None) -> str:
    """Return a time to the second, in UTC; the browser writes it in Airflow's zone."""
    return NOTHING if not ms or ms < 0 else on_page(ms)


def ms_of(time: datetime | None) -> int | None:
    """Return milliseconds since the epoch."""
    return None if time is None else int(time.timestamp() * 1000)


def short_run(run: str) -> str:
    """Return the kind of a run whose id was made of a kind and a time: `scheduled`, `manual`, `run`; else its id.

    A later part of a backfill keeps its number: `manual ~2`.
    """
    found = _parts_of(run)
    if found is None:
        return run
    kind = found["kind"].replace("_", " ")
    return f"{kind} {found['part']}" if found["part"] else kind


def made_ms(run: str) -> int | None:
    """Return the time of which a run's id was made (epoch ms); None for another id, or if no calendar has it."""
    found = _parts_of(run)
    if found is None:
        return None
    try:
        time = datetime.fromisoformat(found["time"])
    except ValueError:
        return None
    return ms_of(time if time.tzinfo else time.replace(tzinfo=UTC))


def _parts_of(run: str) -> re.Match[str] | None:
    """Return the parts of an id that was made of a kind and a time; None for another id."""
    return _PARTS.fullmatch(run) if _MADE.fullmatch(run) else None


def runs_in(sentence: str, known: str = "") -> Iterator[tuple[str, str]]:
    """Return a sentence in pieces: text, and the id of the run that follows it, which is empty at the end.

    They are ids that were made of a kind and a time, and `known`. An id is text in what people copy: in
    quotes, after an option of a command, and in the name of a topic.
    """
    ids = f"{re.escape(known)}|{_ID}" if known else _ID
    before, after = _ALONE
    at = 0
    for found in re.finditer(f"{_VERBATIM}|{before}(?P<run>{ids}){after}", sentence):
        if found["run"]:
            yield sentence[at : found.start()], found["run"]
            at = found.end()
    yield sentence[at:], ""
