"""What only one side of a compacted topic has, against the log of the other."""

from __future__ import annotations

import pytest

from ferry.model import RecordContent
from ferry.plan.rules import compaction
from ferry.plan.rules.compaction import OneSided

SOURCE, TARGET = 0, 1


def record(offset: int, key: bytes | None, value: bytes | None = b"v") -> RecordContent:
    return RecordContent(offset, 0, key, value, b"\0")


@pytest.mark.parametrize(
    ("value", "log", "explained"),
    [
        (b"v", [(12, b"v")], True),
        (b"v", [(3, b"v")], False),
        (b"v", [(3, b"v"), (12, None)], True),
        (b"v", [], False),
        (None, [], True),
        (None, [(3, b"old")], False),
        (None, [(3, b"old"), (12, b"v")], True),
        (None, [(12, b"v")], True),
    ],
)
@pytest.mark.parametrize("side", [SOURCE, TARGET])
def test_a_later_record_of_the_key_or_the_age_of_a_tombstone_explains(
    side: int, value: bytes | None, log: list[tuple[int, bytes | None]], explained: bool
) -> None:
    lone = OneSided()
    lone.add(side, record(110, b"k", value), place=10)
    for offset, later in log:
        lone.look(1 - side, record(offset, b"k", later))
        lone.look(1 - side, record(offset, b"other", later))
    assert [one.offset for one in lone.unexplained(side)] == ([] if explained else [110])


def test_of_a_key_the_latest_record_counts() -> None:
    lone = OneSided()
    lone.add(SOURCE, record(5, b"k"), place=5)
    lone.add(SOURCE, record(9, b"k"), place=9)
    lone.look(TARGET, record(7, b"k"))
    assert [one.offset for one in lone.unexplained(SOURCE)] == [9]
    assert lone.unexplained(TARGET) == []


def test_more_keys_than_there_is_room_for_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_KEYS", 2)
    lone = OneSided()
    for offset, key in enumerate((b"a", b"b", b"a")):
        lone.add(SOURCE, record(offset, key), place=offset)
    assert not lone.is_full
    lone.add(SOURCE, record(3, b"c"), place=3)
    assert lone.is_full
