"""The connections of one flow on one event loop: the target with its ledger, and the source.

All code that sends requests to a flow's clusters uses these connections: planning, lag, each slot, and ledger readers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from ferry.config.client_options import ConnectionOptions
from ferry.errors import FerryError
from ferry.kafka.connect.cluster import Cluster, Options, event_loop
from ferry.kafka.connect.security import security_arguments
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.ledger_cache import LedgerCache
from ferry.ledger.ledger import LedgerView
from ferry.model import Flow

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig
    from ferry.config.keys.layers import Side

T = TypeVar("T")

SOURCE_PATIENCE_S = 5.0
"""How long a source is tried that need not answer."""

IN_FLIGHT_PER_CONNECTION = 64
"""Ferry itself limits produce requests (to five); the client must not refuse the ledger reads between them."""


def manager_options(options: ConnectionOptions) -> Options:
    """Return connection options as keyword arguments of kafka-python's connection manager."""
    arguments: Options = {item.name: getattr(options, item.name) for item in fields(options)}
    arguments["bootstrap_servers"] = list(options.bootstrap_servers)
    arguments["socket_options"] = list(options.socket_options)
    arguments["max_in_flight_requests_per_connection"] = IN_FLIGHT_PER_CONNECTION
    return arguments | security_arguments(arguments.pop("tls"), arguments.pop("login"))


def _options(flow: FlowConfig, side: Side) -> ConnectionOptions:
    from ferry.config.flow.clients import flow_client_options  # noqa: PLC0415 - a copy process has no file to read

    return flow_client_options(flow, side, "consumer" if side == "source" else "producer")


class TargetConnection:
    """The target of a flow and its ledger. Use it as a context manager; `run` executes work on its event loop."""

    def __init__(self, flow: Flow, target: ConnectionOptions, *, patience_s: float = 60.0) -> None:
        """`patience_s` is how long an unreachable cluster is tried, in seconds."""
        self.target_options = target
        arguments = manager_options(target)
        self.loop = event_loop()  # after what can fail, because it holds sockets
        self.target = Cluster(self.loop, flow.target, arguments, patience_s=patience_s)
        self.ledger = LedgerTopic(self.target, flow.source)
        self.cache = LedgerCache(self.ledger)

    @classmethod
    def of(cls, flow: FlowConfig, *, patience_s: float = 60.0) -> Self:
        """Make the connection of a flow's configuration. Raises BadInput when a secret cannot be resolved."""
        return cls(flow.flow, _options(flow, "target"), patience_s=patience_s)

    def __enter__(self) -> Self:
        """Connect. Raises Unreachable, which names the cluster that does not answer."""
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
        """Close the connections."""
        self.target.close()
        self.loop.close()

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function on the event loop, to its end."""
        result: T = self.loop.run(work)
        return result

    async def has_ledger(self) -> bool:
        """Return whether the flow has a ledger yet."""
        return await self.ledger.exists()

    async def view(self) -> LedgerView:
        """Return the ledger's view, old receipts in short.

        Raises BadInput when there is no ledger, because the flow never ran.
        """
        return await self.cache.view()

    async def view_if_any(self) -> LedgerView:
        """Return the ledger's view, old receipts in short; an empty one when the flow never ran."""
        return await self.cache.view_if_any()


class FlowConnections(TargetConnection):
    """Both clusters of a flow."""

    def __init__(
        self, flow: Flow, target: ConnectionOptions, source: ConnectionOptions, *, patience_s: float = 60.0
    ) -> None:
        """`patience_s` is how long an unreachable cluster is tried, in seconds."""
        self.source_options = source
        arguments = manager_options(source)
        super().__init__(flow, target, patience_s=patience_s)
        self.source = Cluster(self.loop, flow.source, arguments, patience_s=patience_s)

    @classmethod
    def of(cls, flow: FlowConfig, *, patience_s: float = 60.0) -> Self:
        """Make the connections of a flow's configuration. Raises BadInput when a secret cannot be resolved."""
        source = _options(flow, "source")
        return cls(flow.flow, _options(flow, "target"), source, patience_s=patience_s)

    @property
    def has_source(self) -> bool:
        """Whether the source answered."""
        return True

    async def _open(self) -> None:
        # Both at once: one of them is often far away.
        for opening in [self.loop.call_soon_with_future(cluster.open) for cluster in (self.source, self.target)]:
            await opening

    def close(self) -> None:
        """Close the connections."""
        self.source.close()
        super().close()


class EitherSide(FlowConnections):
    """Both clusters of a flow, as far as they answer; `down` holds by alias why one does not.

    Connecting raises the target's error when neither answers.
    """

    def __init__(
        self, flow: Flow, target: ConnectionOptions, source: ConnectionOptions, *, patience_s: float = 60.0
    ) -> None:
        """`patience_s` is how long an unreachable cluster is tried, in seconds."""
        super().__init__(flow, target, source, patience_s=patience_s)
        self.down: dict[str, FerryError] = {}

    @property
    def has_source(self) -> bool:
        """Whether the source answered."""
        return self.source.alias not in self.down

    async def _open(self) -> None:
        for cluster, opened in self.both(lambda cluster: cluster.open()):
            try:
                await opened
            except FerryError as error:
                self.down[cluster.alias] = error
        if len(self.down) == 2:
            raise self.down[self.target.alias]

    def both(self, work: Callable[[Cluster], Awaitable[T]]) -> list[tuple[Cluster, Awaitable[T]]]:
        """Begin some work with each cluster that is not down, at the same time."""
        up = [cluster for cluster in (self.source, self.target) if cluster.alias not in self.down]
        return [(cluster, self.loop.call_soon_with_future(partial(work, cluster))) for cluster in up]


class TargetFirst(EitherSide):
    """The target, and the source if it answers within SOURCE_PATIENCE_S, because after a disaster it does not.

    Raises Unreachable when the target does not answer.
    """

    def __init__(
        self, flow: Flow, target: ConnectionOptions, source: ConnectionOptions, *, patience_s: float = 60.0
    ) -> None:
        """`patience_s` is how long an unreachable target is tried, in seconds."""
        super().__init__(flow, target, source, patience_s=patience_s)
        self.source.patience_s = min(patience_s, SOURCE_PATIENCE_S)

    async def _open(self) -> None:
        await super()._open()
        if self.target.alias in self.down:
            raise self.down[self.target.alias]
