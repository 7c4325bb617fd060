"""Portion by portion: what fails is told of what it is about, and what comes next is still compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ferry.errors import Refused
from ferry.features.records.acts.cutoffs import Unread
from ferry.features.records.spark.task_monitor import TooSlow
from ferry.features.verify.acts.compare import Compared
from ferry.features.verify.rules.compare_ranges import unreadable_range
from ferry.features.verify.rules.portions import Unread as Failures
from ferry.features.verify.spark.compare_portions import compared_in_portions
from ferry.kafka.fetch.fetch_buffer import ReadFailure
from ferry.model import NotCompared, RefusalKind, TopicPartition
from tests.spark.test_faults import Raised

PIECES = list(range(6))


class Pairs:
    """Numbers, two at a time; each is a record of a partition of its own."""

    name = "some"

    def __init__(self, compare: Callable[[Sequence[int]], None]) -> None:
        self._compare = compare
        self.asked: list[list[int]] = []

    def portion(self, left: Sequence[int]) -> tuple[list[int], list[int]]:
        return list(left[:2]), list(left[2:])

    def compare(self, portion: Sequence[int]) -> Compared:
        self.asked.append(list(portion))
        self._compare(portion)
        return Compared(records=len(portion))

    def readable(self, groups: Sequence[Sequence[int]], unread: Failures) -> tuple[list[list[int]], list[NotCompared]]:
        gone = {place.partition: why for place, (_, why) in unread.items()}
        lost = [one for group in groups for one in group if one in gone]
        return [[one for one in group if one not in gone] for group in groups], [
            unreadable_range(TopicPartition("t", one), (0, 1), gone[one]) for one in lost
        ]

    def lost(self, some: Sequence[int], why: str) -> list[NotCompared]:
        return [unreadable_range(TopicPartition("t", one), (0, 1), why) for one in some]


def unread(*partitions: int) -> Raised:
    failure = ReadFailure(kind=RefusalKind.CORRUPT, message="it is damaged", offset=0)
    text = Unread({TopicPartition("t", number): failure for number in partitions})
    return Raised(f"Traceback (most recent call last):\nferry.features.records.acts.cutoffs.Unread: {text}\n")


def raising(at: int, error: Exception) -> Callable[[Sequence[int]], None]:
    def compare(portion: Sequence[int]) -> None:
        if at in portion:
            raise error

    return compare


BROKEN = Raised('Traceback (most recent call last):\n  File "f.py", line 3, in mask\nKeyError: 7\n')
GONE = Raised("Traceback (most recent call last):\nferry.errors.Unreachable: a does not answer\n")
WORDS = "Spark failed on ferry.transform.some ("


@pytest.mark.parametrize(
    ("error", "asked", "lost", "why"),
    [
        (unread(2), [[0, 1], [2, 3], [3], [4, 5]], [2], "it is damaged"),
        (unread(2, 3, 5), [[0, 1], [2, 3], [4]], [2, 3, 5], "it is damaged"),
        (unread(0), [[0, 1], [2, 3], [4, 5]], [2, 3], WORDS),  # of nothing that is left: not again, for ever
        (BROKEN, [[0, 1], [2, 3], [4, 5]], [2, 3], f"{WORDS}KeyError in mask (f.py, line 3)): "),
        (GONE, [[0, 1], [2, 3]], [2, 3, 4, 5], f"{WORDS}a does not answer): "),
        (TooSlow({0: "it takes too long"}), [[0, 1], [2, 3]], [2, 3, 4, 5], "it takes too long"),
        (Refused("another session"), [[0, 1], [2, 3]], [2, 3, 4, 5], "another session"),
    ],
)
def test_what_fails_is_told_alone(error: Exception, asked: list[list[int]], lost: list[int], why: str) -> None:
    pairs = Pairs(raising(2, error))
    found = compared_in_portions(pairs, PIECES)
    assert pairs.asked == asked
    assert [one.source.partition for one in found.not_compared] == lost
    assert found.records == len(PIECES) - len(lost)
    for one in found.not_compared:
        assert f" were not compared: {why}" in one.message
        assert one.asked
