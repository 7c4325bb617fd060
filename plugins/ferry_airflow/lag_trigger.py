"""Measures a flow's lag at intervals in Airflow's triggerer: to start runs, and for the sensors.

A trigger holds the names of the file and of the flow, as the tasks do; secrets are resolved here, at each measurement.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from ferry.clock import wall_ms
from ferry.config.flow.lag_start import LagStart
from ferry.errors import FerryError
from ferry.features.observe.rules.samples import Labels
from ferry.plan.rules.lag import LagLook, awaited, is_below, is_caught_up, total_of
from ferry.plan.rules.lag_start import Call, call_for_run
from ferry.run.spark.job_end import FINAL
from ferry.words import count_of, to_the_ms
from ferry_airflow.trigger_base import KeptTrigger

T = TypeVar("T")

PATIENCE_S = 20.0
"""How long a cluster is tried for one measurement."""


class _FlowTrigger(KeptTrigger):
    """A trigger that measures a flow every `every_seconds`."""

    flow: str
    every_seconds: float

    async def measured(self, look: Callable[[], T]) -> T | None:
        """Return one measurement; None, with a warning, if there is none for now. Raises errors that stay."""
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # the sentence of the error has what a client logs
        try:
            # Airflow's connections are read in the triggerer's own event loop, to which only this call leads back.
            return await sync_to_async(look, thread_sensitive=False)()
        except FINAL:
            raise
        except FerryError as error:
            self.not_known(error)
            return None

    def not_known(self, error: FerryError) -> None:
        """Log that the lag could not be measured, and why."""
        self.log.warning("the lag of flow %s is not known: %s", self.flow, error)


class LagTrigger(_FlowTrigger, BaseEventTrigger):
    """One event for each run that the lag calls for.

    A measurement that fails is a warning, and the next one follows: Airflow does not restart a trigger that has ended.
    """

    arguments = ("config", "flow", "records", "seconds", "every_seconds")

    def __init__(
        self, *, config: str, flow: str, records: int | None, seconds: int | None, every_seconds: int, **kwargs: Any
    ) -> None:
        """The limits are those of `LagStart`."""
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.config = config
        self.flow = flow
        self.records = records
        self.seconds = seconds
        self.every_seconds: int = every_seconds
        self.series: Collection[Labels] = ()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the events; it never ends by itself."""
        last: Call | None = None
        while True:
            found = None
            try:
                found = await self.measured(partial(self.look, last))
            except FerryError as error:
                self.not_known(error)
            except Exception:
                self.log.exception("the lag of flow %s could not be measured", self.flow)
            if found is not None:
                last = found
                self.log.info("flow %s has a lag of %d records: a run is started", self.flow, found.total.records)
                yield TriggerEvent(self._payload(found))
            await asyncio.sleep(self.every_seconds)

    def look(self, last: Call | None) -> Call | None:
        """Read both clusters and the ledger once; return the call for a run, if there is one. Raises FerryError.

        The lag is also reported through Airflow's metrics: between runs no other process measures it.
        """
        from ferry.plan.lag import look_at_lag  # noqa: PLC0415 - Kafka's libraries only where they are used
        from ferry_airflow import metrics  # noqa: PLC0415 - as above
        from ferry_airflow.cluster_settings import flow_of  # noqa: PLC0415 - as above

        flow = flow_of(Path(self.config), self.flow)
        lags, standing = look_at_lag(flow, patience_s=PATIENCE_S)
        now_ms = wall_ms()
        if metrics.are_sent():
            self.series = metrics.publish_lag(flow, lags, now_ms, self.series)
        start = LagStart(records=self.records, seconds=self.seconds, every_seconds=self.every_seconds)
        return call_for_run(start, lags, standing, last, now_ms)

    def _payload(self, call: Call) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "records": call.total.records,
            "seconds": call.total.seconds,
            "partitions": call.total.behind,
            "at_ms": call.at_ms,
        }


class _SensorTrigger(_FlowTrigger):
    """Waits until a measurement is as a sensor wants it; then, or after an error that stays, there is one event.

    The event has `seen`, a sentence, or `error`, the sentence of the error.
    """

    def __init__(
        self, *, config: str, flow: str, topics: Collection[str] | None, every_seconds: float, **kwargs: Any
    ) -> None:
        """`topics` are names at the source; None: all of the flow."""
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.config = config
        self.flow = flow
        self.topics = None if topics is None else list(topics)
        self.every_seconds: float = every_seconds

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the one event. An error that is not a FerryError ends the trigger, and Airflow fails the task."""
        await self.begin()
        while True:
            try:
                look = await self.measured(self.look)
            except FerryError as error:
                yield TriggerEvent({"error": str(error)})
                return
            if look is not None:
                sentence = self.sentence(look)
                if self.is_met(look):
                    yield TriggerEvent({"seen": sentence})
                    return
                self.log.info("%s", sentence)
            await asyncio.sleep(self.every_seconds)

    async def begin(self) -> None:
        """Wait for what comes before the first measurement."""

    def look(self) -> LagLook:
        """Read both clusters and the ledger once. Raises FerryError."""
        from ferry.plan.lag import look_at  # noqa: PLC0415 - Kafka's libraries only where they are used
        from ferry_airflow.cluster_settings import flow_of  # noqa: PLC0415 - as above

        flow = flow_of(Path(self.config), self.flow)
        return look_at(flow, only=self.topics, until_ms=self.until(), patience_s=PATIENCE_S)

    def until(self) -> int | None:
        """Return the time (ms) that counts, if one does."""
        return None

    @abstractmethod
    def is_met(self, look: LagLook) -> bool:
        """Return whether the wait is over."""

    @abstractmethod
    def sentence(self, look: LagLook) -> str:
        """Return what was measured, and what is waited for."""


class CaughtUpTrigger(_SensorTrigger):
    """Waits until a flow has copied what came before a time."""

    arguments = ("config", "flow", "topics", "until_ms", "every_seconds")

    def __init__(self, *, until_ms: int, **kwargs: Any) -> None:
        """`until_ms` is the time, in ms since 1970."""
        super().__init__(**kwargs)
        self.until_ms = until_ms

    async def begin(self) -> None:
        """Wait for the time itself: before it, more records may come."""
        if wall_ms() < self.until_ms:
            self.log.info("flow %s: %s has not come yet", self.flow, to_the_ms(self.until_ms))
        while (left := self.until_ms - wall_ms()) > 0:
            await asyncio.sleep(left / 1000)

    def until(self) -> int | None:
        """Return the time."""
        return self.until_ms

    def is_met(self, look: LagLook) -> bool:
        """Return whether all is copied."""
        return is_caught_up(look)

    def sentence(self, look: LagLook) -> str:
        """Return how many partitions are copied up to the time, and one that is not."""
        if unknown := _unknown(look):
            return f"the lag of flow {self.flow} is not known: {unknown}"
        waits, every = awaited(look), count_of(len(look.lags), "partition")
        done = f"flow {self.flow} has copied {len(look.lags) - len(waits)} of {every} up to {to_the_ms(self.until_ms)}"
        if not waits:
            return done
        at, end = ("not known" if offset is None else str(offset) for offset in (waits[0].position, waits[0].end))
        return f"{done}; offset of {waits[0].source}: {at}, awaited: {end}"


class LagBelowTrigger(_SensorTrigger):
    """Waits until a flow's lag is below limits."""

    arguments = ("config", "flow", "topics", "records", "seconds", "every_seconds")

    def __init__(self, *, records: int | None, seconds: float | None, **kwargs: Any) -> None:
        """`records` is the limit of all partitions together, `seconds` the limit of the age of any."""
        super().__init__(**kwargs)
        self.records = records
        self.seconds = seconds

    def is_met(self, look: LagLook) -> bool:
        """Return whether the lag is below the limits."""
        return is_below(look, records=self.records, seconds=self.seconds)

    def sentence(self, look: LagLook) -> str:
        """Return the lag and the limits."""
        if unknown := _unknown(look):
            return f"the lag of flow {self.flow} is not known: {unknown}"
        total = total_of(look.lags)
        age = "not known" if total.seconds is None else f"{total.seconds:.0f} s"
        more = f", of {count_of(total.unknown, 'partition')} not known" if total.unknown else ""
        limits = [] if self.records is None else [count_of(self.records, "record")]
        limits += [] if self.seconds is None else [f"{self.seconds:g} s"]
        found = f"flow {self.flow} has a lag of {count_of(total.records, 'record')}, {age}{more}"
        return f"{found}; awaited: less than {' and '.join(limits)}"


def _unknown(look: LagLook) -> str:
    """Return why nothing is known, in half a sentence; empty if something is."""
    if look.hidden:
        return f"the source does not show topic {min(look.hidden)} to this login"
    if not look.begun:
        return "it had no run yet"
    return "" if look.lags else "no partition is there"
