"""Counts, names and times as sentences have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.start import StartTime, parse_start
from ferry.words import (
    count_of,
    date_of,
    in_name,
    ms_of,
    on_page,
    readable,
    several,
    thousands,
    time_of_day,
    to_the_ms,
    to_the_second,
    visible,
)

ROOT = Path(__file__).parents[2]
WRITES_TIMES = {
    "src/ferry/words.py",
    "plugins/ferry_airflow/assets.py",  # the partition key of Airflow's timetables
    "plugins/ferry_airflow/rest.py",  # the id that Airflow gives to runs
    "plugins/ferry_airflow/sensors.py",  # a time that a template may render as text, too
}


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


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (to_the_second, "2023-11-14T22:13:20Z"),
        (to_the_ms, "2023-11-14T22:13:20.999Z"),
        (on_page, "2023-11-14 22:13:20 UTC"),
        (time_of_day, "22:13:20.9"),
        (in_name, "20231114T221320Z"),
    ],
)
def test_a_time_is_in_utc_and_what_is_smaller_than_its_form_is_cut_off(form: Callable[[int], str], text: str) -> None:
    assert form(1_700_000_000_999) == text


@pytest.mark.parametrize("at_ms", [0, 1, 1_700_000_000_001, 253_402_300_799_999, -1, -62_135_596_800_000])
def test_a_time_to_the_millisecond_is_read_as_the_same_time(at_ms: int) -> None:
    assert parse_start(to_the_ms(at_ms)) == StartTime(timestamp_ms=at_ms)
    assert ms_of(datetime.fromisoformat(to_the_ms(at_ms))) == at_ms


@pytest.mark.parametrize("at_ms", [253_402_300_800_000, 2**63 - 1, -62_135_596_800_001, -(2**63)])
def test_a_time_that_no_calendar_has_is_shown_as_its_number(at_ms: int) -> None:
    assert date_of(at_ms) is None
    for form in (to_the_second, to_the_ms, on_page):
        assert form(at_ms) == f"{at_ms} ms since 1970"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a b€", "a b€"),
        ("\x1b[31m\r\x00\x7f\x9b", "\\x1b[31m\\r\\x00\\x7f\\x9b"),
        ("\u202e\u2066\ufeff\U000e0001", "\\u202e\\u2066\\ufeff\\U000e0001"),
        ("\ud800", "\\ud800"),
        ("a\n\tb", "a\\n\\tb"),
    ],
    ids=["plain", "steers a terminal", "shows nothing or turns text", "half of a pair", "lines"],
)
def test_what_cannot_be_shown_is_escaped(text: str, safe: str) -> None:
    assert visible(text) == safe


@given(st.text(), st.sampled_from(("", "\n\t")))
def test_no_character_but_the_kept_ones_can_steer_a_terminal(text: str, keep: str) -> None:
    assert all(one.isprintable() or one in keep for one in visible(text, keep=keep))


def test_times_are_written_in_one_place() -> None:
    by_hand = re.compile(r"\.(?:strftime|isoformat|ctime)\(|\{[^{}]*:%[YHdm]")
    files = [path for folder in ("src", "plugins", "jobs", "dags") for path in (ROOT / folder).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in files if by_hand.search(path.read_text())}
    assert found == WRITES_TIMES


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
