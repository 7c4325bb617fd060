"""Waits for a copy in Airflow's triggerer: for a driver in the Spark cluster, or as the client of Spark Connect.

An event says how the wait ended. What is copied is in the ledger alone, which the task reads after it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import TriggerEvent
from asgiref.sync import sync_to_async

from ferry.errors import FerryError
from ferry.model import Origin
from ferry.spark.job_end import FINAL
from ferry_airflow.cluster_driver import ended_driver, state_of
from ferry_airflow.trigger_base import KeptTrigger

if TYPE_CHECKING:
    from ferry_airflow.connect_copy import ConnectCopy

MISSED = 10
"""How often in a row a driver's state may be not known."""
END_SECONDS = 8.0
"""How long the orderly end of a copy may take."""
ASK_SECONDS = 0.5
"""How often a copy that is to end is asked to."""


class DriverTrigger(KeptTrigger):
    """Waits until a driver in the Spark cluster has ended.

    The one event has `state`, the cluster manager's word, and `succeeded`. `state` is None if it was not known ten
    times in a row. If a user ends the task meanwhile, the driver is ended.
    """

    arguments = ("conn_id", "driver", "options", "every_seconds")

    def __init__(
        self, *, conn_id: str, driver: str, options: Mapping[str, Any], every_seconds: float, **kwargs: Any
    ) -> None:
        """`driver` is the cluster manager's id of it, `options` are those of `cluster_driver.asking`."""
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.conn_id = conn_id
        self.driver = driver
        self.options = dict(options)
        self.every_seconds = every_seconds

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the one event."""
        missed = 0
        while True:
            try:
                # Airflow's connections are read in the triggerer's own event loop, to which only this call leads back.
                found = await sync_to_async(self.look, thread_sensitive=False)()
            except Exception as error:  # the provider raises those of three clients
                missed += 1
                self.log.warning("the state of driver %s is not known: %s", self.driver, error)
                if missed == MISSED:
                    yield TriggerEvent({"driver": self.driver, "state": None, "succeeded": False})
                    return
            else:
                missed = 0
                if not found.is_active:
                    yield TriggerEvent({"driver": self.driver, "state": found.state, "succeeded": found.succeeded})
                    return
            await asyncio.sleep(self.every_seconds)

    def look(self) -> Any:
        """Ask the cluster manager once."""
        return state_of(self.conn_id, self.driver, self.options)

    def end(self) -> None:
        """End the driver."""
        ended_driver(self.conn_id, self.driver, self.options)

    async def on_kill(self) -> None:
        """End the driver: Airflow calls this when a user ended or cleared the task."""
        self.log.info("the task was ended by a user: driver %s is ended", self.driver)
        await sync_to_async(self.end, thread_sensitive=False)()


class ConnectCopyTrigger(KeptTrigger):
    """Copies as a client of a Spark Connect server: that must live as long as the copy, and holds no record.

    The one event has `error` and `final`, if the copy failed. If the trigger ends before that, the copy is ended, too.
    Another triggerer then makes a new attempt at the same run, which continues after the last receipts.
    """

    arguments = ("config", "flow", "run_id", "conn_id", "dag_id", "dag_run_id", "try_number")

    def __init__(
        self,
        *,
        config: str,
        flow: str,
        run_id: str,
        conn_id: str,
        dag_id: str,
        dag_run_id: str,
        try_number: int,
        **kwargs: Any,
    ) -> None:
        """`run_id` is Ferry's id of the run, whose plan is in the ledger; the last three go into the receipts."""
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.config = config
        self.flow = flow
        self.run_id = run_id
        self.conn_id = conn_id
        self.dag_id = dag_id
        self.dag_run_id = dag_run_id
        self.try_number = try_number
        self._copy: ConnectCopy | None = None
        self._thread: asyncio.Future[dict[str, Any]] | None = None

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Copy on a thread of its own, and yield the one event."""
        # The loop's own few threads are for short questions.
        with_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ferry-copy")
        said = self._said()
        try:
            copying = sync_to_async(self.copied, thread_sensitive=False, executor=with_thread)
            self._thread = asyncio.ensure_future(copying(said))
            yield TriggerEvent(await asyncio.shield(self._thread))
        finally:
            with_thread.shutdown(wait=False)

    def copied(self, say: Any) -> dict[str, Any]:
        """Copy, and return the event's content."""
        from ferry_airflow.connect_copy import ConnectCopy  # noqa: PLC0415 - Spark only where it is used

        origin = Origin(
            host=f"{socket.gethostname()}:{os.getpid()}",
            dag_id=self.dag_id,
            dag_run_id=self.dag_run_id,
            try_number=self.try_number,
        )
        try:
            self._copy = ConnectCopy.of(Path(self.config), self.flow, self.run_id, self.conn_id, origin, say)
            self._copy.run()
        except FerryError as error:
            return {"error": str(error), "final": isinstance(error, FINAL)}
        return {}

    async def cleanup(self) -> None:
        """End a copy that still runs, however the trigger ended: its client does not outlive this process."""
        until = asyncio.get_running_loop().time() + END_SECONDS
        thread = self._thread
        while thread is not None and not thread.done() and asyncio.get_running_loop().time() < until:
            if self._copy is not None:
                await asyncio.to_thread(self._copy.end)
            await asyncio.wait([thread], timeout=ASK_SECONDS)
        if thread is not None and thread.done():
            with suppress(asyncio.CancelledError):
                thread.exception()  # it was asked for

    def _said(self) -> Any:
        """Return a function that logs a line into the task's log, from any thread."""
        loop, own = asyncio.get_running_loop(), contextvars.copy_context()

        def say(text: str) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.log.info, "%s", text, context=own)

        return say
