"""Answers that are kept: what is shown has the time at which it was got, whatever failed since."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ferry.reader import answers
from ferry.reader.answers import Answers, Ended
from ferry.reader.client import Reader
from ferry.reader.documents import Answer
from ferry.reader.questions import OfLanes
from ferry.reader.wire import Message, Reply, Told, decoded, encoded

KEY = ("groups",)
NOON = 1_800_000_000_000
HOUR = 3_600_000


def ending(got: object, error: str = "") -> Callable[[Ended], threading.Event]:
    """A thread that has ended already."""

    def begin(ended: Ended) -> threading.Event:
        ended(got, error)
        done = threading.Event()
        done.set()
        return done

    return begin


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [NOON]
    monkeypatch.setattr(answers, "wall_ms", lambda: now[0])
    return now


def test_a_failed_try_does_not_make_an_old_answer_younger(clock: list[int]) -> None:
    kept = Answers()
    found = kept.answer(KEY, ending("of noon"), fresh_seconds=20)
    assert (found.got, found.at_ms, found.failed_ms, found.error) == ("of noon", NOON, 0, "")
    clock[0] += HOUR
    found = kept.answer(KEY, ending(None, "silent"), fresh_seconds=20)
    assert (found.got, found.at_ms, found.failed_ms, found.error) == ("of noon", NOON, NOON + HOUR, "silent")
    clock[0] += 1_000
    kept.answer(KEY, lambda _: pytest.fail("it was tried a second ago"), fresh_seconds=20)
    clock[0] += HOUR
    found = kept.answer(KEY, ending("of two"), fresh_seconds=20)
    assert (found.got, found.at_ms, found.failed_ms, found.error) == ("of two", clock[0], 0, "")


def test_an_answer_that_never_came_has_no_time_and_does_not_wait(clock: list[int]) -> None:
    found = Answers().answer(KEY, ending(None, "silent"), fresh_seconds=20)
    assert (found.at_ms, found.failed_ms, found.waiting) == (0, NOON, False)
    assert Answer().waiting


def test_both_times_pass_to_the_page() -> None:
    told = Told(got=[], error="silent", at_ms=NOON, failed_ms=NOON + HOUR)

    def exchange(content: bytes, seconds: float) -> bytes:
        assert decoded(Message, content).asks[0].ask == "OfLanes"
        return encoded(Reply, Reply(told=(told,)))

    found = Reader(exchange, lookup=lambda _: {}).ask("a->b", OfLanes())
    assert (found.got, found.at_ms, found.failed_ms, found.error) == ((), NOON, NOON + HOUR, "silent")
