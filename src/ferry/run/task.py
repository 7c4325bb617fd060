"""One slot in one process: connect, copy, hand back. What a Spark task and the command line both call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import TypeVar

from ferry.config.clients import ConnectionOptions
from ferry.model import Origin, Receipt
from ferry.net.cluster import Cluster, Options, event_loop
from ferry.net.ledger import LedgerTopic
from ferry.net.security import security_arguments
from ferry.run.kafka_port import CopyLimits, KafkaSlot
from ferry.run.slot import SlotRef, SlotResult, copy_slot

T = TypeVar("T")

IN_FLIGHT_PER_CONNECTION = 64
"""Ferry counts produce requests itself (five); the client must not refuse the ledger reads between them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """All that a process needs to copy any slot of a run; travels pickled, its secrets never in text."""

    ref: SlotRef
    source: ConnectionOptions = field(repr=False)
    target: ConnectionOptions = field(repr=False)
    limits: CopyLimits
    origin: Origin
    began_ms: int
    patience_s: float


def manager_options(options: ConnectionOptions) -> Options:
    """Connection options as keyword arguments of kafka-python's connection manager."""
    arguments: Options = {item.name: getattr(options, item.name) for item in fields(options)}
    arguments["bootstrap_servers"] = list(options.bootstrap_servers)
    arguments["socket_options"] = list(options.socket_options)
    arguments["max_in_flight_requests_per_connection"] = IN_FLIGHT_PER_CONNECTION
    return arguments | security_arguments(arguments.pop("tls"), arguments.pop("login"))


def run_slot(spec: TaskSpec, stop: Callable[[], bool], committed: Callable[[list[Receipt]], None]) -> SlotResult:
    """Copy the slot that `spec` names; raises as `copy_slot`, and Unreachable when a cluster does not answer."""

    async def work(source: Cluster, target: Cluster, ledger: LedgerTopic) -> SlotResult:
        port = KafkaSlot(
            source=source,
            target=target,
            ledger=ledger,
            ref=spec.ref,
            limits=spec.limits,
            origin=spec.origin,
            began_ms=spec.began_ms,
            stop=stop,
        )
        try:
            return await copy_slot(port, spec.ref, stop, committed)
        finally:
            await port.end()

    return connected(spec, work)


def connected(spec: TaskSpec, work: Callable[[Cluster, Cluster, LedgerTopic], Awaitable[T]]) -> T:
    """Run `work` on an event loop of its own with source, target and ledger open, and close them behind it."""
    of_source, of_target = manager_options(spec.source), manager_options(spec.target)
    loop = event_loop()  # behind what can fail: it holds sockets
    source = Cluster(loop, spec.ref.flow.source, of_source, patience_s=spec.patience_s)
    target = Cluster(loop, spec.ref.flow.target, of_target, patience_s=spec.patience_s)

    async def act() -> T:
        await source.open()
        await target.open()
        ledger = LedgerTopic(target, spec.ref.flow.source)
        await ledger.find()
        return await work(source, target, ledger)

    try:
        result: T = loop.run(act)
        return result
    finally:
        source.close()
        target.close()
        loop.close()
