"""A run is measured while it copies: by its log, by its bar, and without harm where nothing can be measured."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from ferry.commands import progress as shown
from ferry.copy.task import SlotTask
from ferry.errors import FerryError, Unreachable
from ferry.ledger.progress import NOTHING_SENT, LogEnd, RunProgress
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import LedgerRecord, TopicPartition
from ferry.run import following
from ferry.run.following import Following
from tests.pure.decide.test_progress import FIRST, LAST, OTHER, TWO
from tests.pure.decide.values import lying
from tests.tiers import ANSWER_S

SPEC = cast("SlotTask", SimpleNamespace(ref=SimpleNamespace(flow=TWO.flow, generation=TWO.generation), target=None))
SENT = {FIRST.target: LogEnd(500, 530), OTHER.target: NOTHING_SENT}


class Target:
    """A target whose ends and ledger are given; asked for in this order each time."""

    def __init__(self, ends: dict[TopicPartition, LogEnd], records: list[LedgerRecord]) -> None:
        self.ends = ends
        self.records = records
        self.asked: list[object] = []
        self.down: FerryError | None = None
        self.target = self.ledger = self

    def __call__(self, *_: object, **__: object) -> Self:
        return self

    def __enter__(self) -> Self:
        if self.down is not None:
            raise self.down
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def whole() -> Any:
            return await work()

        return asyncio.run(whole())

    async def log_ends(self, _: object, places: Collection[TopicPartition]) -> dict[TopicPartition, LogEnd]:
        self.asked.append(set(places))
        return self.ends

    async def read(self, start: int, end: int | None) -> tuple[list[LedgerRecord], int]:
        self.asked.append(start)
        return [record for record in self.records if record.offset >= start], 100


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    receipt, *_ = receipt_records(replace(LAST, generation=TWO.generation, end=100))
    made = Target(SENT, lying(receipt, first=7))
    monkeypatch.setattr(following, "TargetConnection", made)
    monkeypatch.setattr(following, "log_ends", made.log_ends)
    return made


def test_the_ends_of_the_logs_are_asked_for_before_the_ledger_is_read(target: Target) -> None:
    seen: list[RunProgress] = []
    twice = threading.Event()

    def show(found: RunProgress) -> None:
        seen.append(found)
        if len(seen) == 2:
            twice.set()

    with Following(TWO, SPEC, every_s=0.01, show=show, say=pytest.fail):
        assert twice.wait(ANSWER_S)
    assert target.asked[:4] == [{FIRST.target, OTHER.target}, TWO.generation, {OTHER.target}, 100]
    assert seen[0].whole.records == LAST.records
    assert seen[0].whole.offsets_per_second is not None


def test_a_target_that_is_not_there_is_reported_and_nothing_is_known_of_what_is_sent(target: Target) -> None:
    target.down = Unreachable("gone")
    told: list[str] = []
    said = threading.Event()

    def say(text: str) -> None:
        told.append(text)
        said.set()

    with Following(TWO, SPEC, every_s=0.01, show=lambda _: None, say=say) as follower:
        assert said.wait(ANSWER_S)
    assert "gone" in told[0]
    assert follower.now.whole.is_unknown


def test_a_short_run_opens_no_connection_and_has_its_line(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    target.down = Unreachable("it was asked")
    with caplog.at_level(logging.INFO), shown.shown_progress(TWO, SPEC, quiet=False) as hear:
        hear([replace(LAST, end=100), replace(LAST, source=OTHER.source, target=OTHER.target, end=150)])
    (line,) = caplog.messages
    assert "2 of 2 slices, 80 records, 8.0 kB " in line
    assert "it was asked" not in line


def test_a_quiet_run_measures_nothing(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), shown.shown_progress(TWO, SPEC, quiet=True) as hear:
        hear([LAST])
    assert (caplog.messages, target.asked) == ([], [])
