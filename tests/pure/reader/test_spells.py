"""When clusters did not answer, and what was paused, over many polls."""

from __future__ import annotations

from ferry.model import Pause
from ferry.reader.documents import Mark, Spell, Trouble
from ferry.reader.spells import KEPT_MS, MOST_SPELLS, spells_of

NINE = 1_790_000_000_000
DOWN = Trouble(cluster="b", why="no answer", since_ms=NINE)
OUTAGE = Spell(mark=Mark.OUTAGE, of="b", since_ms=NINE)


def paused(since_ms: int) -> Pause:
    return Pause(topic="orders", who="ada", why="migration", since_ms=since_ms)


def test_an_outage_lasts_until_the_poll_that_does_not_show_it() -> None:
    first = spells_of((), [DOWN], {}, NINE)
    assert first == (OUTAGE,)
    assert spells_of(first, [DOWN], {}, NINE + 5) == first
    over = spells_of(first, [], {}, NINE + 9)
    assert over == (Spell(mark=Mark.OUTAGE, of="b", since_ms=NINE, until_ms=NINE + 9),)
    assert spells_of(over, [], {}, NINE + 20) == over
    again = Trouble(cluster="b", why="no answer", since_ms=NINE + 30)
    assert [one.until_ms for one in spells_of(over, [again], {}, NINE + 30)] == [NINE + 9, None]


def test_a_pause_that_was_replaced_is_two() -> None:
    first = spells_of((), [], {"orders": paused(NINE)}, NINE + 1)
    found = spells_of(first, [], {"orders": paused(NINE + 5)}, NINE + 6)
    assert [(one.of, one.since_ms, one.until_ms) for one in found] == [
        ("orders", NINE, NINE + 6),
        ("orders", NINE + 5, None),
    ]


def test_they_are_kept_for_the_longest_range_of_the_charts_and_are_bounded() -> None:
    over = spells_of(spells_of((), [DOWN], {}, NINE), [], {}, NINE + 1)
    assert spells_of(over, [], {}, NINE + KEPT_MS) == over
    assert spells_of(over, [], {}, NINE + 1 + KEPT_MS) == ()
    found: tuple[Spell, ...] = ()
    for at_ms in range(NINE, NINE + 3 * MOST_SPELLS):
        found = spells_of(found, [], {"orders": paused(at_ms)}, at_ms)
    assert len(found) == MOST_SPELLS
    assert found[-1].until_ms is None
