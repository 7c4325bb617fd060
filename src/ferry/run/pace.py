"""How far a copy has come, and about how long the rest takes at the pace so far."""

from __future__ import annotations

from ferry.words import count_of


def span(seconds: float) -> str:
    """Return an approximate time as text: `40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def outlook(whole: int, left: int, seconds: float) -> str:
    """Return as text how many of `whole` offsets are left after some seconds, and about how long they take."""
    done = whole - left
    rest = f", about {span(seconds * left / done)} to go" if done > 0 and left else ""
    return f"{share_copied(whole, left)}{rest}"


def share_copied(whole: int, left: int) -> str:
    """Return as text how many of `whole` offsets are left."""
    return f"{100 * (whole - left) // max(1, whole)} % copied, {count_of(left, 'offset')} left"
