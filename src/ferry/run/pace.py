"""How far a copy has come, and about how long the rest takes at the pace so far."""

from __future__ import annotations


def span(seconds: float) -> str:
    """A time that is only about right: `40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def outlook(whole: int, left: int, seconds: float) -> str:
    """Of so many offsets so many are left, after so long."""
    done = whole - left
    rest = f", about {span(seconds * left / done)} to go" if done > 0 and left else ""
    return f"{told(whole, left)}{rest}"


def told(whole: int, left: int) -> str:
    """Of so many offsets so many are left."""
    return f"{100 * (whole - left) // max(1, whole)} % copied, {left} offset(s) left"
