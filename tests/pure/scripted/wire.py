"""Ferry's connections to scripted brokers: kafka-python's transport without a socket, in skipped time."""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from kafka.net.selector import NetworkSelector

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.connect.frames import Frames
from ferry.kafka.connect.manager import ConnectionManager
from ferry.lane.connections import IN_FLIGHT_PER_CONNECTION
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.clock import Clock
from tests.pure.scripted.faults import Asked

_COUNTED = struct.Struct(">i")


class Wire:
    """kafka-python's transport without a socket: frames go to `brokers`, answers come back by the loop."""

    def __init__(self, loop: NetworkSelector, brokers: Brokers, node: int) -> None:
        self.brokers = brokers
        self.node = node
        self.host = brokers.host
        self.last_activity = 0.0
        self._loop = loop
        self._protocol: Any = None
        self._closed = False
        self._buffer = b""
        self._answers: deque[tuple[Asked, bytearray]] = deque()
        self._until = 0.0

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def resume_reading(self) -> None:
        """There is nothing to wait for."""

    def getPeer(self) -> tuple[str, int]:  # noqa: N802 - kafka-python's name
        return self.host, self.brokers.port + self.node

    def host_port(self) -> str:
        return f"{self.host}:{self.brokers.port + self.node}"

    def write(self, data: Any) -> None:
        """Send frames, as pieces or as one."""
        if not isinstance(self._protocol.parser, Frames):
            self._protocol.parser = Frames(self._protocol.parser, "ferry", 1 << 30)
        self._buffer += b"".join(bytes(piece) for piece in data) if isinstance(data, list) else bytes(data)
        while len(self._buffer) >= 4 and not self._closed:
            size = _COUNTED.unpack_from(self._buffer)[0]
            if len(self._buffer) < 4 + size:
                return
            frame, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
            self._loop.call_soon(self._arrival(frame))

    def _arrival(self, frame: bytes) -> Iterator[None]:
        """A task of the loop. It is a generator, because the loop takes those without a look at what a function is."""
        if not self._closed:
            try:
                self.brokers.take(self, frame)
            except Exception as error:  # the loop would only log it
                self.brokers.broken.append(error)
                self.cut()
        yield

    def deliver(self, asked: Asked, frame: bytearray, late_s: float) -> None:
        """An answer arrives, after those before it: a connection keeps their order."""
        self._answers.append((asked, frame))
        self._until = max(self._until, time.monotonic() + late_s)
        self._loop.call_at(self._until, self._delivery())

    def _delivery(self) -> Iterator[None]:
        asked, frame = self._answers.popleft()
        self.brokers.answered(asked)
        if not self._closed:
            self._protocol.data_received([frame])
        yield

    def cut(self) -> None:
        """The connection is lost."""
        self.abort(ConnectionResetError(104, "Connection reset by peer"))

    def abort(self, error: Exception | None = None) -> None:
        if not self._closed:
            self._closed = True
            self._protocol.connection_lost(error)

    def close(self) -> None:
        self.abort(None)


def connected(loop: NetworkSelector, brokers: Brokers) -> Cluster:
    """A cluster of Ferry's that is not opened yet."""
    options = {
        "bootstrap_servers": [f"127.0.0.1:{brokers.port + brokers.nodes[0]}"],
        "max_in_flight_requests_per_connection": IN_FLIGHT_PER_CONNECTION,
    }
    return Cluster(loop, brokers.alias, options, patience_s=20)


@contextmanager
def on_the_wire(*clusters: Brokers) -> Iterator[tuple[Clock, NetworkSelector]]:
    """A loop whose connections lead to these brokers, and whose time is skipped."""
    clock = Clock()
    for number, one in enumerate(clusters):
        one.port = 1000 * (number + 1)
    by_port = {one.port + node: (one, node) for one in clusters for node in one.nodes}

    async def build(self: ConnectionManager, node: Any, timeout_at: float | None = None) -> Wire:
        brokers, number = by_port[node.port]
        if number not in brokers.nodes:
            raise ConnectionRefusedError(111, "Connection refused")
        return Wire(self._loop, brokers, number)

    with clock.in_force(), patch.object(ConnectionManager, "_build_transport", build):
        loop = clock.loop()
        try:
            yield clock, loop
        finally:
            loop.close()
            for one in clusters:
                if one.broken:
                    raise one.broken[0]


@contextmanager
def scripted(*clusters: Brokers) -> Iterator[tuple[Clock, list[Cluster]]]:
    """Clusters of Ferry's on these brokers, connected, on one loop."""
    with on_the_wire(*clusters) as (clock, loop):
        made = [connected(loop, one) for one in clusters]
        try:
            for cluster in made:
                loop.run(cluster.open)
            yield clock, made
        finally:
            for cluster in made:
                cluster.close()
