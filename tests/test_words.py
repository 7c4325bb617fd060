"""Counts, names and times as sentences have them."""

from __future__ import annotations

import pytest

from ferry.words import count_of, several, to_the_second


@pytest.mark.parametrize(
    ("number", "sentence"), [(0, "0 records"), (1, "1 record"), (2, "2 records"), (1000, "1000 records")]
)
def test_a_count_has_its_noun_in_the_right_number(number: int, sentence: str) -> None:
    assert count_of(number, "record") == sentence


@pytest.mark.parametrize(
    ("names", "sentence"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_of_many_names_the_first_are_told(names: list[str], sentence: str) -> None:
    assert several(names) == sentence


def test_a_time_is_in_utc_and_its_milliseconds_are_cut_off() -> None:
    assert to_the_second(1_700_000_000_999) == "2023-11-14T22:13:20Z"
