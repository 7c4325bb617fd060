"""Two logs without an offset map: what a mirror without a ledger has copied, lost, altered and repeated."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferry.features.verify.rules import by_content, history
from ferry.features.verify.rules.by_content import ByContent
from ferry.model import DifferenceKind, RecordContent
from ferry.plan.rules.record_sample import record_samples
from tests.pure.decide.values import place

Kind = DifferenceKind
Told = list[tuple[DifferenceKind, tuple[int, int], tuple[int, int]]]
SEE = record_samples(b"s", values=False)
BOTH = (True, True)


def record(number: int, **fields: bytes | None) -> tuple[int, bytes | None, bytes | None, bytes]:
    key, value = fields.get("key", b"k%d" % (number % 7)), fields.get("value", b"value %d" % number)
    return number, key, value, b"\x00"


def log(numbers: Sequence[int], first: int = 0, step: int = 1) -> list[RecordContent]:
    return [RecordContent(first + step * at, *record(number)) for at, number in enumerate(numbers)]


def compared(
    sources: Sequence[RecordContent],
    targets: Sequence[RecordContent],
    *,
    turns: tuple[int, int] = (50, 50),
    all_of: tuple[bool, bool] = BOTH,
) -> ByContent:
    """Feed both as they are wanted, so many at a time."""
    ranges = tuple((row[0].offset, row[-1].offset + 1) if row else (0, 0) for row in (sources, targets))
    found = ByContent(place("t"), place("a.t"), ranges[0], ranges[1], SEE, all_of=all_of)
    at, done = [0, 0], [False, False]
    while not found.is_complete:
        moved = False
        for side, row in enumerate((sources, targets)):
            if done[side] or not found.wants(side):
                continue
            part = row[at[side] : at[side] + turns[side]]
            at[side] += len(part)
            done[side] = at[side] >= len(row)
            found.feed(side, part, done=done[side])
            moved = True
        assert moved, "it waits for what it does not want"
    return found


def told(found: ByContent) -> Told:
    return [(one.kind, one.source_range, one.target_range) for one in found.differences]


MANY = range(3_000)


def test_equal_logs_at_other_offsets_are_equal() -> None:
    found = compared(log(MANY), log(MANY, first=77, step=2), turns=(13, 170))
    assert (told(found), found.records, found.behind, found.parted) == ([], 3_000, None, None)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([*range(100), *range(101, 900)], [(Kind.MISSING, (100, 101), (100, 100))]),
        ([*range(1, 900)], [(Kind.MISSING, (0, 1), (0, 0))]),
        ([*range(100), 5_000, *range(100, 900)], [(Kind.EXTRA, (100, 100), (100, 101))]),
        ([*range(899), 5_000, 899], [(Kind.EXTRA, (899, 899), (899, 900))]),
        ([*range(900), 5_000], [(Kind.EXTRA, (900, 900), (900, 901))]),
        ([*range(100), 101, 100, *range(102, 900)], [(Kind.ORDER, (100, 102), (100, 102))]),
        (
            [*range(100), 5_000, *range(100, 200), 201, 200, *range(202, 900)],
            [(Kind.EXTRA, (100, 100), (100, 101)), (Kind.ORDER, (200, 202), (201, 203))],
        ),
        ([*range(100), *range(700, 900)], [(Kind.MISSING, (100, 700), (100, 100))]),
        ([*range(100), *range(90, 900)], [(Kind.DUPLICATE, (90, 100), (100, 110))]),
        ([*range(800), *range(10, 900)], [(Kind.DUPLICATE, (10, 800), (800, 1_590))]),
        (
            [*range(100), *range(50, 100), *range(60, 900)],
            [(Kind.DUPLICATE, (50, 100), (100, 150)), (Kind.DUPLICATE, (60, 100), (150, 190))],
        ),
        (
            [*range(96), *range(97, 100), *range(60, 96), *range(97, 104), *range(70, 96), *range(97, 900)],
            [
                (Kind.MISSING, (96, 97), (96, 96)),
                (Kind.DUPLICATE, (60, 100), (99, 138)),
                (Kind.DUPLICATE, (70, 104), (142, 175)),
            ],
        ),
        ([*range(900), *range(880, 900)], [(Kind.DUPLICATE, (880, 900), (900, 920))]),
        (
            [*range(100), *range(101, 200), *range(190, 900)],
            [(Kind.MISSING, (100, 101), (100, 100)), (Kind.DUPLICATE, (190, 200), (199, 209))],
        ),
    ],
    ids=[
        *("missing", "the first", "extra", "extra near the end", "extra at the end", "swapped"),
        *("extra, then swapped", "a window missing"),
        *("a restart", "a long way back", "two restarts", "missing, then two restarts", "a restart at the end"),
        "missing, then a restart",
    ],
)  # fmt: skip
def test_what_differs_is_told_at_the_smallest_ranges(numbers: Sequence[int], expected: Told) -> None:
    for turns in ((50, 50), (1_000, 3), (3, 1_000)):
        found = compared(log(range(900)), log(numbers), turns=turns)
        assert told(found) == expected
        assert found.parted is None


@pytest.mark.parametrize("field", [1, 2, 3, 4])
def test_an_altered_record_is_one_difference_of_its_field(field: int) -> None:
    targets = log(range(900), first=30)
    altered = list(targets[400])
    altered[field] = 9 if field == 1 else b"x"
    targets[400] = RecordContent._make(altered)
    kinds = {1: Kind.TIMESTAMP, 2: Kind.KEY, 3: Kind.VALUE, 4: Kind.HEADERS}
    assert told(compared(log(range(900)), targets)) == [(kinds[field], (400, 401), (430, 431))]


def test_a_log_of_which_every_record_was_altered_is_one_difference() -> None:
    targets = [one._replace(headers=b"\x02\x02h\x02v") for one in log(range(2_000))]
    found = compared(log(range(2_000)), targets)
    assert told(found) == [(Kind.HEADERS, (0, 2_000), (0, 2_000))]


def test_what_the_target_has_not_yet_is_no_difference() -> None:
    found = compared(log(range(2_000)), log(range(600)))
    assert (told(found), found.behind, found.records) == ([], 600, 600)
    nothing = compared(log(range(10)), [])
    assert (told(nothing), nothing.behind) == ([], 0)
    near = compared(log(range(10)), log([0, 1, 2, 4, 5, 6]))
    assert (told(near), near.behind) == ([(Kind.MISSING, (3, 4), (3, 3))], 7)


@pytest.mark.parametrize(("source_first", "target_first"), [(0, 700), (700, 0), (5, 9)])
def test_what_lies_before_the_first_common_record_is_left_out_where_retention_may_have_taken_it(
    source_first: int, target_first: int
) -> None:
    found = compared(
        log(range(source_first, 2_000), first=source_first),
        log(range(target_first, 2_000), first=target_first),
        all_of=(False, False),
    )
    first = max(source_first, target_first)
    assert (told(found), found.records) == ([], 2_000 - first)
    assert found.before == (
        (source_first, first) if source_first < first else None,
        (target_first, first) if target_first < first else None,
    )


def test_logs_without_a_common_record_are_not_searched_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_content, "LOOKAHEAD", 1_000)
    others = [RecordContent(at, 10**6 + at, b"o%d" % at, b"other %d" % at, b"\x00") for at in range(5_000)]
    apart = compared(log(range(5_000)), others, all_of=(False, False))
    assert (told(apart), apart.parted) == ([], 0)
    behind = compared(log(range(5_000)), [*log(range(100)), *(one._replace(offset=one.offset + 100) for one in others)])
    assert (told(behind), behind.parted) == ([], 100)


def test_repetitions_that_lie_too_far_back_are_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "HISTORY", 50)
    found = compared(log(range(900)), log([*range(100), *range(20, 900)]))
    assert told(found) == [(Kind.EXTRA, (100, 100), (100, 130)), (Kind.DUPLICATE, (50, 100), (130, 180))]


@pytest.mark.slow
@example(319)  # what was lost beside what came once, then repetitions of both
@example(552)  # a repetition right behind another, and what came once between them is in the second again
@given(st.integers(0, 2**32))
def test_whatever_happened_every_record_is_accounted_for(seed: int) -> None:
    chance = random.Random(seed)
    numbers: list[int] = []
    lost = doubled = 0
    for number in range(1_500):
        fate = chance.random()
        if fate < 0.003:
            lost += 1
            continue
        numbers.append(number)
        if fate > 0.998:
            back = chance.randrange(1, 40)
            doubled += len(numbers[-back:])
            numbers += numbers[-back:]
    numbers += range(1_500, 1_520)  # both end alike
    found = compared(log(range(1_520)), log(numbers), turns=(chance.randrange(1, 90), chance.randrange(1, 90)))
    sizes: Counter[DifferenceKind] = Counter()
    for one in found.differences:
        start, end = one.target_range if one.kind is Kind.DUPLICATE else one.source_range
        sizes[one.kind] += end - start
    assert (sizes[Kind.MISSING], sizes[Kind.DUPLICATE]) == (lost, doubled), sizes
    assert set(sizes) <= {Kind.MISSING, Kind.DUPLICATE}
    assert found.records == 1_520
