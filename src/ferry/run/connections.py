"""The connections of one flow: the target with its ledger, and the source beside it, on one event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from ferry.config.clients import flow_client_options
from ferry.config.flow import FlowConfig
from ferry.decide.ledger import LedgerView, fold
from ferry.net.cluster import Cluster, event_loop
from ferry.net.ledger import LedgerTopic
from ferry.run.task import manager_options

T = TypeVar("T")


class TargetConnection:
    """The target of a flow and its ledger. Use as a context manager; `run` what shall happen inside."""

    def __init__(self, flow: FlowConfig, *, patience_s: float = 60.0) -> None:
        """`patience_s`: how long an unreachable cluster is tried."""
        self.flow = flow
        self.target_options = flow_client_options(flow, "target", "producer")
        arguments = manager_options(self.target_options)
        self.loop = event_loop()  # behind what can fail: it holds sockets
        self.target = Cluster(self.loop, flow.flow.target, arguments, patience_s=patience_s)
        self.ledger = LedgerTopic(self.target, flow.flow.source)

    def __enter__(self) -> Self:
        """Connect; Unreachable names the cluster that does not answer."""
        try:
            self.run(self._open)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _open(self) -> None:
        await self.target.open()

    def close(self) -> None:
        """Drop the connections."""
        self.target.close()
        self.loop.close()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function on the event loop, to its end."""
        result: T = self.loop.run(work)
        return result

    async def has_ledger(self) -> bool:
        """Whether the flow has a ledger yet."""
        topic = self.ledger.place.topic
        return topic in await self.target.refresh([topic])

    async def view(self) -> LedgerView:
        """The whole ledger, folded; BadInput when there is none, for the flow never ran."""
        await self.ledger.find()
        return fold(*await self.ledger.read())


class FlowConnections(TargetConnection):
    """Both clusters of a flow."""

    def __init__(self, flow: FlowConfig, *, patience_s: float = 60.0) -> None:
        """As TargetConnection."""
        self.source_options = flow_client_options(flow, "source", "consumer")
        arguments = manager_options(self.source_options)
        super().__init__(flow, patience_s=patience_s)
        self.source = Cluster(self.loop, flow.flow.source, arguments, patience_s=patience_s)

    async def _open(self) -> None:
        await self.source.open()
        await super()._open()

    def close(self) -> None:
        """Drop the connections."""
        self.source.close()
        super().close()
