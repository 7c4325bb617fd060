"""Waits for a copy in Airflow's triggerer: for a driver in the Spark cluster, or as the client of Spark Connect.

An event says how the wait ended. What is copied is in the ledger alone, which the task reads after it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import TriggerEvent
from asgiref.sync import sync_to_async

from ferry.errors import FerryError, Superseded
from ferry.model import Origin
from ferry.run.spark.job_end import FINAL
from ferry_airflow.cluster_driver import DriverState, ended_driver, state_of
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

    def look(self) -> DriverState:
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

    The one event has `error` and `final`, if the copy failed, and `superseded`, if another attempt or run took over. If
    the trigger ends before that, the copy is ended, too. Another triggerer then makes a new attempt at the same run,
    which continues after the last receipts. It does so, too, while a triggerer lives that Airflow took for dead.
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
        self._event: asyncio.Future[dict[str, Any]] | None = None

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Copy on a thread of its own, and yield the one event. Any other error than Ferry's ends the trigger."""
        try:
            # Airflow's connections are read in the triggerer's own event loop, to which only this call leads back.
            self._copy = await sync_to_async(self.prepared, thread_sensitive=False)(self._said())
        except FerryError as error:
            yield TriggerEvent(_failure(error))
            return
        loop = asyncio.get_running_loop()
        self._event = loop.create_future()
        # The loop's own few threads are for short questions, and the process does not wait for this one when it ends.
        Thread(target=self._work, args=(self._copy, loop, self._event), name="ferry-copy", daemon=True).start()
        yield TriggerEvent(await asyncio.shield(self._event))

    def prepared(self, say: Callable[[str], None]) -> ConnectCopy:
        """Return the copy, which has not begun. Raises FerryError."""
        from ferry_airflow.connect_copy import ConnectCopy  # noqa: PLC0415 - Spark only where it is used

        origin = Origin(
            host=f"{socket.gethostname()}:{os.getpid()}",
            dag_id=self.dag_id,
            dag_run_id=self.dag_run_id,
            try_number=self.try_number,
        )
        return ConnectCopy.of(Path(self.config), self.flow, self.run_id, self.conn_id, origin, say)

    @staticmethod
    def _work(copy: ConnectCopy, loop: asyncio.AbstractEventLoop, event: asyncio.Future[dict[str, Any]]) -> None:
        """Copy, and give the event's content to the loop."""
        found: dict[str, Any] = {}
        unexpected: BaseException | None = None
        try:
            copy.run()
        except FerryError as error:
            found = _failure(error)
        except BaseException as error:  # the trigger raises it
            unexpected = error

        def give() -> None:
            if unexpected is None:
                event.set_result(found)
            else:
                event.set_exception(unexpected)

        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(give)

    async def cleanup(self) -> None:
        """End a copy that still runs, however the trigger ended: its client does not outlive this process."""
        copy, event, loop = self._copy, self._event, asyncio.get_running_loop()
        if copy is None or event is None:
            return
        until = loop.time() + END_SECONDS
        while not event.done() and loop.time() < until:
            await asyncio.to_thread(copy.end)
            await asyncio.wait([event], timeout=ASK_SECONDS)
        if event.done():
            event.exception()  # it is read, so that asyncio does not report it as lost

    def _said(self) -> Callable[[str], None]:
        """Return a function that logs a line into the task's log, from any thread."""
        loop, own = asyncio.get_running_loop(), contextvars.copy_context()

        def say(text: str) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self.log.info, "%s", text, context=own)

        return say


def _failure(error: FerryError) -> dict[str, Any]:
    """Return the content of the event of a copy that failed."""
    found = {"error": str(error), "final": isinstance(error, FINAL)}
    return found | ({"superseded": True} if isinstance(error, Superseded) else {})
