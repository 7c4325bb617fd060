"""The copy over Spark Connect in the triggerer: it ends with its error, and with its trigger."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from ferry.errors import FerryError, Refused, Superseded, Unreachable
from ferry.model import Origin
from ferry_airflow import connect_copy
from tests.airflow.test_deferring import FLOW, RUN, connect_trigger, event_of
from tests.tiers import ANSWER_S


class Copy:
    """A copy that ends with an error, or not before it is ended."""

    def __init__(self, error: Exception | None = None, *, endless: bool = False) -> None:
        self.error = error
        self.begun, self.ended = threading.Event(), threading.Event()
        if not endless:
            self.ended.set()
        self.threads: list[str] = []

    def of(self, config: Path, flow: str, run: str, conn_id: str, origin: Origin, say: Any) -> Copy:
        assert (config, flow, run, conn_id) == (Path("/f"), FLOW, RUN, "there")
        assert (origin.dag_id, origin.dag_run_id, origin.try_number) == ("d", "r", 2)
        say("a line")
        return self

    def run(self) -> None:
        self.threads.append(threading.current_thread().name)
        self.begun.set()
        assert self.ended.wait(ANSWER_S), "it was not ended"
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        self.ended.set()


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (None, {}),
        (Refused("the topic is paused"), {"error": "the topic is paused", "final": True}),
        (Unreachable("no answer"), {"error": "no answer", "final": False}),
        (Superseded("by attempt 2"), {"error": "by attempt 2", "final": True, "superseded": True}),
    ],
)
def test_a_copy_over_spark_connect_ends_with_its_error(
    error: FerryError | None, event: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Copy(error)
    monkeypatch.setattr(connect_copy, "ConnectCopy", copy)
    assert event_of(connect_trigger()) == event
    assert [name.startswith("ferry-copy") for name in copy.threads] == [True], "not on the triggerer's own threads"


def test_an_unexpected_error_of_a_copy_ends_the_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect_copy, "ConnectCopy", Copy(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        event_of(connect_trigger())


def test_a_trigger_that_ends_ends_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Copy(Unreachable("ended"), endless=True)
    monkeypatch.setattr(connect_copy, "ConnectCopy", copy)

    async def ended() -> None:
        trigger = connect_trigger()
        wait = asyncio.ensure_future(anext(trigger.run()))
        assert await asyncio.to_thread(copy.begun.wait, 30)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        assert not copy.ended.is_set()
        await trigger.cleanup()

    asyncio.run(ended())
    assert copy.ended.is_set()
