"""Counts, names, times and foreign text in the form of sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

SAYS = "ferry: "
"""How a line of Ferry's own begins, among those that Spark prints."""

_NAMES_SHOWN = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_THINGS = "records?|offsets?|partitions?|topics?|bytes?|groups?|receipts?|slices?|units?|chunks?|segments?|batch(?:es)?"
_THINGS += "|differences?|keys?|rows?|members?|transactions?|runs?|windows?|refusals?|lanes?|flows?"
_COUNTED = re.compile(
    rf"(?<![\w.,:/=#-])\d{{4,}}(?= (?:of \d+ )?(?:(?:more|other|copied|source|target) )*(?:{_THINGS})\b)"
)


def count_of(number: int, noun: str) -> str:
    """Return `1 slice`, `2 slices`."""
    return agreeing(number, noun, f"{noun}s")


def agreeing(number: int, one: str, many: str) -> str:
    """Return a number with the words that agree with it: `1 group has`, `2 groups have`."""
    return f"{number} {one if number == 1 else many}"


def thousands(value: float) -> str:
    """Return a number with its thousands separated by a narrow space that does not break."""
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def readable(sentence: str) -> str:
    """Return a sentence of a log or of JSON for people: counts of things have their thousands separated.

    Offsets, names and addresses stay unchanged, so that they can be copied.
    """
    return _COUNTED.sub(lambda found: thousands(int(found[0])), sentence)


def size(count: float) -> str:
    """Return bytes in decimal units, the units in which disks and networks are sold: `12.3 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def whole_size(count: int) -> str:
    """Return bytes in decimal units without fractions, rounded down: `5 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count:.0f} TB"


def several(names: Sequence[str]) -> str:
    """Return names for a sentence: the first few, and how many more there are."""
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def visible(text: str, *, keep: str = "") -> str:
    r"""Return text in which characters that show nothing, or change how others are shown, are written as escapes.

    So a value can neither steer a terminal nor turn the direction of what is next to it: `\x1b`, `\u202e`. Those in
    `keep` stay, such as the line ends of a text that may have several lines.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode() for each in text
    )


def has_utf8(text: str) -> bool:
    """Return whether UTF-8 can write a text. Half a surrogate pair, Python's sign for a foreign byte, it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_the_second(at_ms: int) -> str:
    """Return a time (ms since the epoch) of the ledger or of a report, in UTC: `2026-11-22T12:00:00Z`."""
    return _in_utc(at_ms, "T", "seconds", "Z")


def to_the_ms(at_ms: int) -> str:
    """Return a time (ms since the epoch) of a record or of a window, in UTC: `2026-11-22T12:00:00.000Z`.

    Options, keys and parameters read it.
    """
    return _in_utc(at_ms, "T", "milliseconds", "Z")


def on_page(at_ms: int) -> str:
    """Return a time (ms since the epoch) as pages and reports show it, in UTC: `2026-11-22 12:00:00 UTC`."""
    return _in_utc(at_ms, " ", "seconds", " UTC")


def time_of_day(at_ms: int) -> str:
    """Return the hour to a tenth of a second, in UTC: `12:00:00.4`. The text around it names the zone."""
    return _in_utc(at_ms, "T", "milliseconds", "")[-len("12:00:00.400") : -2]


def in_name(at_ms: int) -> str:
    """Return a time (ms since the epoch) as a part of names of runs and files, in UTC: `20261122T120000Z`."""
    return to_the_second(at_ms).replace("-", "").replace(":", "")


def date_of(at_ms: int) -> datetime | None:
    """Return a time (ms since the epoch) in UTC; None: no calendar has it, as a record may have any timestamp."""
    try:
        return _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None


def ms_of(time: datetime) -> int:
    """Return a time that has a zone in ms since the epoch, rounded down."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def _in_utc(at_ms: int, between: str, to: str, zone: str) -> str:
    time = date_of(at_ms)
    if time is None:
        return f"{at_ms} ms since 1970"
    return time.replace(tzinfo=None).isoformat(between, timespec=to) + zone
