"""Measures a flow's lag in Airflow's triggerer, and sends an event when it calls for a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from ferry.clock import wall_ms
from ferry.config.flow.lag_start import LagStart
from ferry.errors import FerryError
from ferry.features.observe.rules.samples import Labels
from ferry.plan.rules.lag_start import Call, call_for_run

PATIENCE_S = 20.0
"""How long a cluster is tried for one measurement."""


class LagTrigger(BaseEventTrigger):
    """One event for each run that the lag calls for.

    It holds the names of the file and of the flow, as the tasks do; secrets are resolved here, at each measurement. A
    measurement that fails is a warning, and the next one follows: Airflow does not restart a trigger that has ended.
    """

    def __init__(
        self, *, config: str, flow: str, records: int | None, seconds: int | None, every_seconds: int, **kwargs: Any
    ) -> None:
        """The limits are those of `LagStart`."""
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.config = config
        self.flow = flow
        self.records = records
        self.seconds = seconds
        self.every_seconds = every_seconds
        self.told: Collection[Labels] = ()

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class and arguments, as Airflow keeps them in its database; no secret is among them."""
        arguments = {name: getattr(self, name) for name in ("config", "flow", "records", "seconds", "every_seconds")}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the events; it never ends by itself."""
        last: Call | None = None
        while True:
            found = None
            try:
                # Airflow's connections are read in the triggerer's own event loop, to which only this call leads back.
                found = await sync_to_async(self.look, thread_sensitive=False)(last)
            except FerryError as error:
                self.log.warning("the lag of flow %s is not known: %s", self.flow, error)
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
        from ferry_airflow.connection import flow_of  # noqa: PLC0415 - as above

        flow = flow_of(Path(self.config), self.flow)
        lags, standing = look_at_lag(flow, patience_s=PATIENCE_S)
        now_ms = wall_ms()
        if metrics.are_told():
            self.told = metrics.tell_lag(flow, lags, now_ms, self.told)
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
