"""Sizes and durations with units: one syntax for options and for Ferry's own keys."""

from __future__ import annotations

import pytest

from ferry.units import Duration, OutOfRange, Size, Unreadable
from tests.golden import Golden

DAY = 86_400


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1048576", 1 << 20),
        ("+5", 5),
        ("10GiB", 10 << 30),
        ("10 GiB", 10 << 30),
        ("10GB", 10 * 10**9),
        ("512MiB", 512 << 20),
        ("512mib", 512 << 20),
        ("64kB", 64_000),
        ("64KiB", 1 << 16),
        ("2TB", 2 * 10**12),
        ("1TiB", 1 << 40),
        ("7B", 7),
        ("1.5GiB", 3 << 29),
        (" 1 MB ", 10**6),
    ],
)
def test_a_size_is_in_bytes(text: str, count: int) -> None:
    assert Size()(text) == count


NO_SIZES = ["", "many", "10 apples", "GiB", "1.5", "-1", "1e9", "10G", "10Gi", "1,000", "\u0663", "nan", "9" * 5000]


@pytest.mark.parametrize("text", NO_SIZES)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(Unreadable):
        Size()(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("0.4", 0.4),
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("2d", 2 * DAY),
        ("1d2h3m4s", DAY + 2 * 3600 + 184),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("1s500ms", 1.5),
    ],
)
def test_a_duration_is_in_the_unit_of_a_bare_number(text: str, seconds: float) -> None:
    assert Duration("s")(text) == seconds
    if text.strip("0123456789.s") or "s" in text:
        assert Duration("ms")(text) == seconds * 1000


def test_a_bare_number_keeps_its_unit() -> None:
    assert (Duration("ms")("60000"), Duration("ms")("60s")) == (60_000, 60_000)


@pytest.mark.parametrize(
    "text", ["", "soon", "m", "10x", "30m1h", "1h1h", "-5s", "1h30", "1:30", "inf", "nan", "1e3", "9" * 400]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Unreadable):
        Duration("s")(text)


def test_whole_units_are_whole_numbers() -> None:
    found = Duration("s", whole=True)("15m")
    assert (found, type(found)) == (900, int)
    assert type(Duration("s")("15m")) is float  # the ledger keeps it as a float
    for text in ("0.5", "250ms", "1.5"):
        with pytest.raises(Unreadable):
            Duration("s", whole=True)(text)
    assert Duration("ms", whole=True)("0.5s") == 500


def test_bounds() -> None:
    assert Size(least=1024)("1KiB") == 1024
    with pytest.raises(OutOfRange):
        Size(least=1025)("1KiB")
    with pytest.raises(OutOfRange):
        Duration("s", most=60)("2m")
    with pytest.raises(OutOfRange):
        Size()("9" * 30)
    assert Duration("s", least=0.1, most=DAY).bounds == " from 0.1s to 1d"
    assert Duration("ms", least=2000).bounds == " of at least 2s"
    assert Size(least=1 << 20).bounds == " of at least 1MiB"
    assert Size(least=1).bounds == " of at least 1 byte"
    assert (Size().bounds, Duration("s").bounds) == ("", "")


def test_an_error_has_the_value_and_the_remedy(golden: Golden) -> None:
    for reader, text in (
        (Size(least=1), "many"),
        (Size(least=1), "0"),
        (Duration("s", whole=True, least=1), "0.5"),
        (Duration("s", least=0.1, most=DAY), "2d"),
        (Duration("ms", least=2000), "soon"),
    ):
        with pytest.raises((Unreadable, OutOfRange)) as wrong:
            reader(text)
        golden(str(wrong.value), text)
