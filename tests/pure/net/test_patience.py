"""Each partition has a clock of its own."""

from __future__ import annotations

from ferry.kafka.fetch.patience import Patience
from tests.pure.net.answers import OTHER, PLACE


def test_a_clock_runs_from_the_first_time_that_a_partition_was_not_served() -> None:
    patience = Patience(10)
    patience.begin([PLACE], 0)
    patience.begin([PLACE, OTHER], 9)
    assert [patience.is_over(place, 11) for place in (PLACE, OTHER)] == [True, False]
    assert not patience.is_over(PLACE, 10)


def test_a_clock_ends_when_records_come() -> None:
    patience = Patience(10)
    patience.begin([PLACE, OTHER], 0, silent=True)
    patience.served(PLACE)
    assert [patience.is_over(place, 11) for place in (PLACE, OTHER)] == [False, True]
    patience.begin([PLACE], 11)
    patience.answered(PLACE)
    assert not patience.is_over(PLACE, 99), "an earlier silence is forgotten"


def test_an_answer_without_room_for_records_says_nothing_about_a_silent_one() -> None:
    patience = Patience(10)
    patience.begin([PLACE], 0)
    patience.begin([OTHER], 0, silent=True)
    for place in (PLACE, OTHER):
        patience.answered(place)
    assert [patience.is_over(place, 11) for place in (PLACE, OTHER)] == [False, True]


def test_time_in_which_nobody_asked_does_not_count() -> None:
    patience = Patience(10)
    patience.begin([PLACE], 0)
    patience.rest([PLACE, OTHER], 5)
    assert [patience.is_over(PLACE, at) for at in (11, 16)] == [False, True]
