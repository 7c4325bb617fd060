"""Counts, names and times as sentences have them."""

from __future__ import annotations

import pytest

from ferry.words import count_of, readable, several, thousands, to_the_second


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


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (71838, "71\u202f838"), (1_204_111.5, "1\u202f204\u202f111.5")]
)
def test_a_number_has_its_thousands_apart(value: float, text: str) -> None:
    assert thousands(value) == text


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("71838 records are equal", "71_838 records are equal"),
        ("8000 of 12000 partitions, 20 offsets left", "8_000 of 12_000 partitions, 20 offsets left"),
        ("12345 more source offsets, 1234567 bytes.", "12_345 more source offsets, 1_234_567 bytes."),
        ("offset 1204111 of orders-3, [1204111, 1209412)", "offset 1204111 of orders-3, [1204111, 1209412)"),
        ("h:9092 partitions", "h:9092 partitions"),
        ("topic orders-2026 records nothing in 2026", "topic orders-2026 records nothing in 2026"),
        ("300 records, 9999 apples", "300 records, 9999 apples"),
    ],
)
def test_of_a_sentence_only_what_counts_something_is_parted(sentence: str, wanted: str) -> None:
    assert readable(sentence) == wanted.replace("_", "\u202f")
    assert readable(readable(sentence)) == readable(sentence)
