"""Sizes and durations as people write them: `10GiB`, `10GB`, `1h30m`. Options and Ferry's own keys share them. Pure.

A size without a unit is in bytes; a duration without one is in the unit that its option or key has always had.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

LONG_MAX = 2**63 - 1
_SIZE = re.compile(r"\+?(\d+)(?:\.(\d+))?\s*([kmgt]i?b|b)", re.ASCII | re.IGNORECASE)
_PART = re.compile(r"(\d+)(?:\.(\d+))?(ms|[dhms])\s*", re.ASCII)
_BARE = re.compile(r"\+?(\d+)(?:\.(\d+))?", re.ASCII)
_LONGEST = 100
"""Characters of a text: a number of some thousand digits is one that Python does not read, or that is not a float."""
_POWERS = "bkmgt"
_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_MICRO = 1000
"""Microseconds in a millisecond: durations are counted in them, so that no fraction is lost on the way."""


class Unreadable(ValueError):
    """The text is not a size, or not a duration; the message has the text and the remedy."""


class OutOfRange(ValueError):
    """The size or duration is below the least or above the most; the message has the text and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A reader of sizes in bytes."""

    what: ClassVar[str] = "size"
    form: ClassVar[str] = "bytes, or a number with a unit, such as 512MiB or 10GB"

    least: int = 0
    most: int = LONG_MAX

    def __call__(self, text: str) -> int:
        """Return the bytes. Raises Unreadable and OutOfRange."""
        bare, found = re.fullmatch(r"\+?\d+", text.strip(), re.ASCII), _SIZE.fullmatch(text.strip())
        if len(text) > _LONGEST:
            raise Unreadable(_unreadable(self, text))
        if bare is not None:
            count = int(bare[0])
        elif found is not None:
            power = _POWERS.index(found[3][0].lower())
            count = _scaled(found[1], found[2], (1024 if len(found[3]) == 3 else 1000) ** power)
        else:
            raise Unreadable(_unreadable(self, text))
        if not self.least <= count <= self.most:
            raise OutOfRange(_out_of_range(self, text))
        return count

    @property
    def bounds(self) -> str:
        """The bounds as the end of a sentence; empty: there are none worth a word."""
        return _bounds(_bytes_text(self.least) if self.least else "", "" if self.most == LONG_MAX else f"{self.most} B")


@dataclass(frozen=True, slots=True)
class Duration:
    """A reader of durations; their number and the bounds are in `unit`. `whole`: fractions of it are refused."""

    what: ClassVar[str] = "duration"

    unit: Literal["s", "ms"]
    least: float = 0
    most: float = LONG_MAX
    whole: bool = False

    def __call__(self, text: str) -> float:
        """Return the number of units. Raises Unreadable and OutOfRange."""
        found = self._micros(text.strip()) if len(text) <= _LONGEST else None
        per = _MS[self.unit] * _MICRO
        if found is None or (self.whole and found % per):
            raise Unreadable(_unreadable(self, text))
        number: float = found // per if self.whole else found / per
        if not self.least <= number <= self.most:
            raise OutOfRange(_out_of_range(self, text))
        return number

    def _micros(self, text: str) -> int | None:
        bare = _BARE.fullmatch(text)
        if bare is not None:
            return _scaled(bare[1], bare[2], _MS[self.unit] * _MICRO)
        parts = list(_PART.finditer(text))
        units = [part[3] for part in parts]
        if not parts or "".join(part[0] for part in parts) != text or units != [one for one in _MS if one in units]:
            return None
        return sum(_scaled(part[1], part[2], _MS[part[3]] * _MICRO) for part in parts)

    @property
    def form(self) -> str:
        """What to write."""
        bare = {"s": "seconds", "ms": "milliseconds"}[self.unit]
        return f"{'whole ' if self.whole else ''}{bare}, or numbers with units, such as 90s, 15m or 1h30m"

    @property
    def bounds(self) -> str:
        """The bounds as the end of a sentence; empty: there are none worth a word."""
        low, high = (self.text(one) if 0 < one < LONG_MAX else "" for one in (self.least, self.most))
        return _bounds(low, high)

    def text(self, number: float) -> str:
        """Return a number of the unit as an operator writes it."""
        ms = number * _MS[self.unit]
        if not ms:
            return "0s"
        name = next(name for name, per in _MS.items() if ms % per == 0 or name == "s")
        return f"{ms / _MS[name]:g}{name}"


def _unreadable(reader: Size | Duration, text: str) -> str:
    return f"{text!r} is not a {reader.what}{reader.bounds}; write {reader.form}"


def _out_of_range(reader: Size | Duration, text: str) -> str:
    return f"{text!r} is out of range; write a {reader.what}{reader.bounds}"


def _scaled(whole: str, fraction: str | None, unit: int) -> int:
    """Return `whole.fraction` times a unit, rounded down."""
    digits = fraction or ""
    per: int = 10 ** len(digits)
    return int(whole + digits) * unit // per


def _bounds(low: str, high: str) -> str:
    if low and high:
        return f" from {low} to {high}"
    return f" of at least {low}" if low else f" of at most {high}" if high else ""


def _bytes_text(count: int) -> str:
    if count == 1:
        return "1 byte"
    power = next((power for power in (4, 3, 2, 1) if count % 1024**power == 0), 0)
    return f"{count // 1024**power}{('', 'Ki', 'Mi', 'Gi', 'Ti')[power]}B" if power else f"{count} bytes"
