"""The page's side of the reader: what is asked at once, what is kept when time is over, and how logins are sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from ferry.errors import BadInput
from ferry.reader import client
from ferry.reader.client import BRIEF_SECONDS, WAIT_SECONDS, Reader
from ferry.reader.documents import Status
from ferry.reader.process import Slow
from ferry.reader.questions import OfTopics
from ferry.reader.typed import dump
from ferry.reader.wire import MOST_ASKED, Ask, Message, Reply, Told, decoded, encoded

FLOWS = [f"a->b{at}" for at in range(100)]


@dataclass
class Scripted:
    """A reader whose answer about a flow takes some seconds of a clock that only it advances."""

    seconds: float = 0.001
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The connections of a flow."""
    handed: dict[str, str] = field(default_factory=dict)
    """Of each flow whose logins came, why they cannot be read."""
    now: float = 100.0
    waits: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def exchange(self, content: bytes, seconds: float) -> bytes:
        self.waits.append(seconds)
        self.sizes.append(len(content))
        if len(content) > MOST_ASKED:
            raise Slow  # a reader ended such a connection
        message: Message = decoded(Message, content)
        told = tuple(self.answer(ask) for ask in message.asks)
        took = self.seconds * sum(given.got is not None for given in told)
        self.now += min(took, seconds)
        if took > seconds:
            raise Slow
        return encoded(Reply, Reply(told=told))

    def answer(self, ask: Ask) -> Told:
        if ask.logins is not None:
            self.handed[ask.flow] = ask.logins.error
        if ask.flow in self.needs and ask.flow not in self.handed:
            return Told(needs=tuple(self.needs[ask.flow]))
        if ask.ask != "OfStatus" or ask.about["mark"]:
            return Told(at_ms=1)
        return Told(got=dump(Status, Status(number=1, mark=ask.flow)), at_ms=1)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """A reader, and the clock of those that ask it."""
    made = Scripted()
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def refused(conn_id: str) -> Mapping[str, str]:
    raise BadInput(f"Airflow connection {conn_id!r} does not exist")


def unknown_after(reader: Reader, requests: int) -> list[int]:
    """How many flows are not known yet after each request for all of them."""
    return [sum(not one.number for one in reader.statuses(FLOWS, closely=False)) for _ in range(requests)]


@pytest.mark.slow
@pytest.mark.parametrize("cost", [0.0011, 0.01, 0.1])
def test_a_large_list_is_filled_by_parts_however_slow_the_reader_is(scripted: Scripted, cost: float) -> None:
    scripted.seconds = cost
    reader = Reader(scripted.exchange, lookup=refused)
    left = unknown_after(reader, 100)
    assert (left[0] < 100, left[-1]) == (True, 0)
    assert left == sorted(left, reverse=True)
    assert set(scripted.waits) == {WAIT_SECONDS}, "none is brief while a flow is not known, and none was in vain"


def test_a_request_for_the_list_takes_no_longer_than_a_wait(scripted: Scripted) -> None:
    scripted.seconds = 0.01
    reader = Reader(scripted.exchange, lookup=refused)
    unknown_after(reader, 1)
    assert scripted.now <= 100.0 + WAIT_SECONDS


def test_what_came_is_kept_when_a_later_part_is_not_answered_in_time(scripted: Scripted) -> None:
    reader = Reader(scripted.exchange, lookup=refused)
    first = unknown_after(reader, 1)
    assert first == [0]
    exchanged = iter(range(3))

    def ends(content: bytes, seconds: float) -> bytes:
        if next(exchanged, None) is None:
            raise Slow
        return scripted.exchange(content, seconds)

    assert unknown_after(Reader(ends, lookup=refused), 1) == [100 - (1 + 2 + 4)]


def test_each_flow_has_its_turn_though_one_is_never_answered_in_time(scripted: Scripted) -> None:
    scripted.seconds = 0.2
    slow = FLOWS[0]

    def exchange(content: bytes, seconds: float) -> bytes:
        if any(ask.flow == slow for ask in decoded(Message, content).asks):
            scripted.now += seconds
            raise Slow
        return scripted.exchange(content, seconds)

    reader = Reader(exchange, lookup=refused)
    few = FLOWS[:5]
    every = [reader.statuses(few, closely=False) for _ in range(10)]
    assert [one.number for one in every[-1]] == [0, 1, 1, 1, 1]


def test_a_wait_is_brief_only_where_an_older_answer_can_be_shown(scripted: Scripted) -> None:
    silent: list[bool] = []

    def exchange(content: bytes, seconds: float) -> bytes:
        if not silent:
            return scripted.exchange(content, seconds)
        scripted.waits.append(seconds)
        raise Slow

    reader = Reader(exchange, lookup=refused)
    reader.status(FLOWS[0])
    reader.ask(FLOWS[0], OfTopics())
    silent.append(True)
    scripted.waits.clear()
    for _ in range(2):
        reader.status(FLOWS[0])
    reader.ask(FLOWS[0], OfTopics())
    reader.ask(FLOWS[0], OfTopics(q="other"))
    reader.status(FLOWS[1])
    assert scripted.waits == [WAIT_SECONDS, BRIEF_SECONDS, BRIEF_SECONDS, WAIT_SECONDS, WAIT_SECONDS]


def test_logins_of_many_flows_are_sent_by_parts_and_a_shared_connection_is_read_once(scripted: Scripted) -> None:
    scripted.needs = {flow: ["shared", f"own-{flow}"] for flow in FLOWS}
    asked: Counter[str] = Counter()

    def lookup(conn_id: str) -> Mapping[str, str]:
        asked[conn_id] += 1
        return {"ssl.truststore.certificates": "x" * 60_000}

    reader = Reader(scripted.exchange, lookup=lookup)
    assert unknown_after(reader, 1) == [0]
    assert (set(asked.values()), len(asked)) == ({1}, 101)
    assert max(scripted.sizes) <= MOST_ASKED
    assert set(scripted.handed.values()) == {""}


def test_a_missing_connection_is_read_once_and_is_handed_as_missing(scripted: Scripted) -> None:
    scripted.needs = {flow: ["shared"] for flow in FLOWS}
    asked: list[str] = []

    def lookup(conn_id: str) -> Mapping[str, str]:
        asked.append(conn_id)
        return refused(conn_id)

    Reader(scripted.exchange, lookup=lookup).statuses(FLOWS, closely=False)
    assert asked == ["shared"]
    assert {"'shared'" in why for why in scripted.handed.values()} == {True}


def test_logins_of_one_flow_that_no_message_has_room_for_are_said(scripted: Scripted) -> None:
    scripted.needs = {FLOWS[0]: ["large"], FLOWS[1]: ["small"]}

    def lookup(conn_id: str) -> Mapping[str, str]:
        return {"ssl.truststore.certificates": "x" * (2 << 20 if conn_id == "large" else 9)}

    Reader(scripted.exchange, lookup=lookup).statuses(FLOWS[:2], closely=False)
    assert "large" in scripted.handed[FLOWS[0]]
    assert scripted.handed[FLOWS[1]] == ""
    assert max(scripted.sizes) <= MOST_ASKED
