"""The ledger of a flow without the flow: for looking things up and for pausing, even while the source is down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from ferry.config.clients import flow_client_options
from ferry.config.flow import FlowConfig
from ferry.decide.ledger import LedgerView, fold
from ferry.model import Record
from ferry.net.cluster import Cluster, event_loop
from ferry.net.ledger import LedgerTopic
from ferry.run.planner import DEFAULT_LEDGER_REPLICATION
from ferry.run.task import manager_options

T = TypeVar("T")


class LedgerAccess:
    """A connection to a flow's target, for its ledger alone. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, patience_s: float = 60.0) -> None:
        """`patience_s`: how long an unreachable target is tried."""
        self._flow = flow
        self._loop = event_loop()
        options = manager_options(flow_client_options(flow, "target", "producer"))
        self._target = Cluster(self._loop, flow.flow.target, options, patience_s=patience_s)
        self._ledger = LedgerTopic(self._target, flow.flow.source)

    def __enter__(self) -> Self:
        """Connect; Unreachable when the target does not answer."""
        try:
            self._run(self._target.open)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop the connections."""
        self._target.close()
        self._loop.close()

    def exists(self) -> bool:
        """Whether the flow has a ledger yet."""

        async def work() -> bool:
            return self._ledger.place.topic in await self._target.refresh([self._ledger.place.topic])

        return self._run(work)

    def view(self) -> LedgerView:
        """The whole ledger, folded; BadInput when there is none, for the flow never ran."""

        async def work() -> LedgerView:
            await self._ledger.find()
            records, end = await self._ledger.read()
            return fold(records, end)

        return self._run(work)

    def append(self, records: Sequence[Record]) -> None:
        """Write records, and create the ledger first when there is none; Refused when its settings could lose them."""

        async def work() -> None:
            await self._ledger.open(self._flow.ledger_replication_factor or DEFAULT_LEDGER_REPLICATION)
            await self._ledger.append(records)

        self._run(work)

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        result: T = self._loop.run(work)
        return result
