"""When clusters did not answer, and what was paused, as far as polls have seen it; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ferry.model import Pause
from ferry.reader.documents import Mark, Spell, Trouble

MOST_SPELLS = 100
KEPT_MS = 24 * 3_600_000
"""How long a spell is kept after its end: for the longest limited range of the charts."""


def spells_of(
    before: Sequence[Spell], troubles: Iterable[Trouble], pauses: Mapping[str, Pause], now_ms: int
) -> tuple[Spell, ...]:
    """Return the spells after a poll, the oldest first: those that it does not show any more have ended at it.

    Those that ended longer than KEPT_MS ago are left out, and the oldest of very many.
    """
    there = [Spell(mark=Mark.OUTAGE, of=one.cluster, since_ms=one.since_ms) for one in troubles]
    there += [Spell(mark=Mark.PAUSE, of=topic, since_ms=one.since_ms) for topic, one in sorted(pauses.items())]
    known = []
    for one in before:
        if one in there or one.until_ms is not None:
            known.append(one)
        else:
            known.append(replace(one, until_ms=now_ms))
    known += [one for one in there if one not in known]
    return tuple(one for one in known if one.until_ms is None or one.until_ms > now_ms - KEPT_MS)[-MOST_SPELLS:]
