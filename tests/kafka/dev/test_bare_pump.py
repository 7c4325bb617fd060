"""The benchmark's bare pump: more partitions at once than a connection takes requests, and answers that are none."""

from __future__ import annotations

import asyncio
import importlib
import io
from collections import deque
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.future import Future

from tests.pure.wire.logs import data

BENCH = Path(__file__).resolve().parents[3] / "bench"


class Connection:
    """Takes no more requests, until the loop has slept a while; as kafka-python's, it then fails each at once."""

    initializing = False
    connected = True

    def __init__(self) -> None:
        self.paused = {"max_in_flight"}
        self.slept = 0

    def send_request(self, request: str) -> str:
        return f"{request} failed" if self.paused else f"{request} is answered"

    async def sleep(self, seconds: float) -> None:
        self.slept += 1
        if self.slept == 3:
            self.paused.clear()


@pytest.mark.parametrize(("connected", "answer", "slept"), [(True, "it is answered", 3), (False, "it failed", 0)])
def test_a_request_waits_while_the_connection_takes_no_more_and_not_for_one_that_is_lost(
    monkeypatch: pytest.MonkeyPatch, connected: bool, answer: str, slept: int
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    side: Any = object.__new__(importlib.import_module("bare_pump").Side)
    connection = Connection()
    connection.connected = connected
    side._loop, side._node = connection, 1
    side._manager = SimpleNamespace(get_connection=lambda node: connection)
    assert asyncio.run(side.submit("it")) == answer
    assert connection.slept == slept


def woken(awaitable: Any, future: Future | None = None, value: object = None) -> Any:
    """The result of something that awaits, woken before its future is done, and again when it is."""
    waiting = awaitable.__await__()
    next(waiting)
    try:
        waiting.send(None)
        if future is not None:
            future.success(value)
            waiting.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it still waits")


def produced(code: int = 0) -> Any:
    """The answer to a produce request."""
    return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[SimpleNamespace(error_code=code)])])


def test_a_waiter_that_is_woken_early_waits_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    pump = importlib.import_module("bare_pump")
    sent = Future()
    woken(pump.settle(deque([sent])), sent, produced())


@pytest.mark.parametrize("answer", [None, SimpleNamespace(responses=None), SimpleNamespace(responses=[])])
def test_a_produce_request_without_an_answer_ends_the_pump_without_a_figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: object
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    pump = importlib.import_module("bare_pump")

    def run(work: Any, *_: object) -> None:
        if work is pump.copy:
            asyncio.run(pump.settle(deque([Future().success(answer)])))

    monkeypatch.setattr(pump, "event_loop", lambda: SimpleNamespace(run=run))
    monkeypatch.setattr(pump, "Side", lambda *_: SimpleNamespace(open=None))
    monkeypatch.setattr("sys.stdin", io.StringIO("go\n"))
    pump.main("h:1", "h:2", "orders", "copy")
    assert capsys.readouterr().out.splitlines() == ["ready", "null"]


def test_end_offsets_without_an_answer_end_the_pump_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    pump = importlib.import_module("bare_pump")
    side: Any = object.__new__(pump.Side)
    side.topic, side.partitions = "orders", [0]

    async def unanswered(_: object) -> Future:
        return Future().success(None)

    monkeypatch.setattr(side, "submit", unanswered)
    with pytest.raises(pump.Unanswered):
        asyncio.run(side.ends())


@pytest.mark.parametrize(("unanswered", "topic"), [(0, "copy"), (1, "again-copy"), (2, None)])
def test_a_pump_without_an_answer_is_repeated_once_into_another_topic(
    monkeypatch: pytest.MonkeyPatch, unanswered: int, topic: str | None
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    contenders = importlib.import_module("contenders")
    usage = {"wall": 1.0, "cpu": 1.0, "peak_mb": 1.0}
    answers: list[Any] = [None] * unanswered + [{"usage": usage, "bytes": 1}]
    there: list[str] = []

    def pumped(*arguments: Any) -> Any:
        there.append(arguments[3])
        return answers.pop(0)

    monkeypatch.setattr(contenders, "pumped", pumped)
    monkeypatch.setattr(contenders, "delete_topic", lambda _, name: there.remove(name))
    names: Any = {"topic": "orders", "target_topic": "copy", "partitions": 1}
    measured = contenders.bare_pump("h:1", "h:2", **names)
    if topic is None:
        assert (measured, there) == (None, [])
    else:
        assert measured == (contenders.Usage(**usage), topic)
        assert there == [topic], "what the first one wrote is deleted"


def test_a_pair_without_a_figure_of_the_pump_keeps_its_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    report, scenarios = importlib.import_module("report"), importlib.import_module("scenarios")
    usage = importlib.import_module("contenders").Usage
    aims = (
        scenarios.Ratio(name="against the pump", above="ferry", below=scenarios.BARE, what="wall", aim=1.25),
        scenarios.Limit(name="time", measure="ferry", what="wall", aim=9),
    )
    shown = SimpleNamespace(title="large", aims=aims)
    both = {"ferry": usage(wall=2, cpu=1), scenarios.BARE: usage(wall=4, cpu=1)}
    alone = {"ferry": usage(wall=2, cpu=1)}

    def cells(*pairs: Any) -> list[list[str]]:
        lines = report.table(shown, pairs).splitlines()
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]

    one, none = cells(alone, both), cells(alone)
    assert [row[0] for row in one][1:3] == ["ferry", f"{scenarios.BARE} (in 1 of 2 pairs)"]
    assert [row[2] for row in one][-2:] == ["1/2.0", "2"]
    assert [row[0] for row in none][1:2] == ["ferry"]
    assert [row[2] for row in none][-2:] == ["not measured", "2"]


def test_a_fetch_without_an_answer_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    pump = importlib.import_module("bare_pump")
    batch = data([(b"k", b"v")])
    part = SimpleNamespace(records=bytearray(batch.data))
    answers: list[Any] = [None, SimpleNamespace(responses=None)]
    answers.append(SimpleNamespace(responses=[SimpleNamespace(partitions=[part])]))
    written: list[Any] = []

    async def ends() -> dict[int, int]:
        return {0: batch.next_offset}

    async def fetched(_: object) -> Future:
        return Future().success(answers.pop(0))

    async def taken(request: Any) -> Future:
        written.append(request)
        return Future().success(produced())

    source: Any = SimpleNamespace(partitions=[0], topic="orders", topic_id=None, ends=ends, submit=fetched)
    target: Any = SimpleNamespace(topic="copy", topic_id=None, submit=taken)
    assert asyncio.run(pump.copy(source, target)) == len(batch.data)
    assert (answers, len(written)) == ([], 1)
