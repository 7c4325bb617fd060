"""A TCP proxy in front of each broker, which makes the faults of a network; all in one process, which obeys lines.

```
python -m tests.proxy '[[LISTEN_PORT, BROKER_PORT], ...]'
in   {"port": LISTEN_PORT, "mode": "delay", "value": 0.2, "later": true}     one line each
out  ready 0                                                                once it listens, and after each line
```

The number is how many connections the fault before that line met: it closed or refused them, or treated their bytes.

With `later` connections that come later behave so, too; without it only those that are open now: a firewall that forgot
them. "cut" closes what is open and passes on.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ferry.dev import RunningCluster
from ferry.dev.broker import Broker
from ferry.ports import LOOPBACK, free_ports
from tests.tiers import ANSWER_S

MODES = ("pass", "cut", "hang", "delay", "trickle", "lost-answers", "lost-requests", "refuse")
PIECE = 1 << 18
TRICKLE_BYTES = 16 << 10
TRICKLE_S = 0.05
READY = "ready"

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """How bytes are treated; `value` is the seconds of "delay", `met` the connections that felt it so far."""

    mode: str = "pass"
    value: float = 0.0
    met: set[object] = field(default_factory=set)


class Connection:
    """Both ends of one client's connection."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter, fault: Fault) -> None:
        self._ends = near, far
        self._fault = fault
        self._changed = asyncio.Event()

    def change(self, fault: Fault) -> None:
        """Behave so from now on. A connection that lost bytes is closed when its fault ends: it is out of step."""
        if fault.mode in ("cut", "refuse"):
            fault.met.add(self)
            self.close()
        elif self._fault.mode.startswith("lost"):
            self.close()
        self._fault = fault
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self) -> None:
        """End it on both sides."""
        for end in self._ends:
            with suppress(OSError):
                end.close()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: str) -> None:
        """Carry one direction until it ends."""
        with suppress(OSError):
            while data := await reader.read(PIECE):
                if self._fault.mode in (losing, "hang", "delay", "trickle"):
                    self._fault.met.add(self)
                while self._fault.mode == "hang":
                    await self._changed.wait()
                if self._fault.mode == losing:
                    continue
                if self._fault.mode == "delay":
                    await asyncio.sleep(self._fault.value)
                size = TRICKLE_BYTES if self._fault.mode == "trickle" else PIECE
                for at in range(0, len(data), size):
                    writer.write(data[at : at + size])
                    await writer.drain()
                    if size == TRICKLE_BYTES:
                        await asyncio.sleep(TRICKLE_S)


class Gate:
    """What lies between clients and one broker."""

    def __init__(self, broker: int) -> None:
        self._broker = broker
        self._fault = self._last = Fault()
        self._open: set[Connection] = set()

    def change(self, fault: Fault, *, later: bool) -> int:
        """Have open connections behave so from now on, and with `later` those that come.

        Return how many connections the fault met that was in force before.
        """
        before, self._last = self._last, fault
        for connection in list(self._open):
            connection.change(fault)
        if later:
            self._fault = Fault() if fault.mode == "cut" else fault
        return len(before.met)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        if self._fault.mode == "refuse":
            self._fault.met.add(writer)
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self._broker)
        except OSError:
            writer.close()
            return
        connection = Connection(writer, far_writer, self._fault)
        self._open.add(connection)
        carried = (
            asyncio.create_task(connection.carry(reader, far_writer, "lost-requests")),
            asyncio.create_task(connection.carry(far_reader, writer, "lost-answers")),
        )
        with suppress(asyncio.CancelledError):  # the process ends
            await asyncio.wait(carried, return_when=asyncio.FIRST_COMPLETED)
        for task in carried:
            task.cancel()
        self._open.discard(connection)
        connection.close()


async def serve(ports: Sequence[tuple[int, int]]) -> None:
    """Serve until standard input ends."""
    gates: dict[int, Gate] = {}
    for listen, broker in ports:
        gates[listen] = Gate(broker)
        await asyncio.start_server(gates[listen].serve, LOOPBACK, listen)
    _say_ready(0)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        asked = json.loads(line)
        _say_ready(gates[asked["port"]].change(Fault(asked["mode"], asked["value"]), later=asked["later"]))


def _say_ready(met: int) -> None:
    sys.stdout.write(f"{READY} {met}\n")
    sys.stdout.flush()


class Proxies:
    """The process, seen from tests; `ports` are broker ports by the ports in front of them."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        self.ports = tuple(ports)
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proxy", json.dumps(list(ports.items()))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        self._wait()

    def change(self, port: int, mode: str, value: float = 0.0, *, later: bool = True) -> int:
        """Have the proxy at `port` behave so: it does when this returns.

        Return how many connections the fault met that this ends: it closed or refused them, or treated bytes of theirs.
        """
        assert mode in MODES
        with self._turn:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"port": port, "mode": mode, "value": value, "later": later}) + "\n")
            self._process.stdin.flush()
            return self._wait()

    def heal(self) -> int:
        """Pass everything on; return how many connections met the fault that this ends."""
        return sum(self.change(port, "pass") for port in self.ports)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(ANSWER_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _wait(self) -> int:
        assert self._process.stdout is not None
        ready, met = self._process.stdout.readline().split()
        assert ready == READY
        return int(met)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxied:
    """A cluster that can be reached through proxies, too."""

    cluster: RunningCluster
    proxies: Proxies

    @property
    def bootstrap(self) -> str:
        """Through the proxies."""
        return ",".join(f"{LOOPBACK}:{port}" for port in self.proxies.ports)

    def change(self, mode: str, value: float = 0.0, *, later: bool = True) -> None:
        """Have the proxies of all brokers behave so."""
        for port in self.proxies.ports:
            self.proxies.change(port, mode, value, later=later)


@contextmanager
def proxied(clusters: Sequence[RunningCluster]) -> Iterator[list[Proxied]]:
    """Give each broker one more listener, which sends its clients to a proxy; the brokers start again with it."""
    free = iter(free_ports(2 * sum(len(cluster.brokers) for cluster in clusters)))  # while the brokers hold theirs
    ports: list[dict[int, int]] = []
    for cluster in clusters:
        cluster.stop()
        ports.append({})
        for broker in cluster.brokers:
            advertised, own = next(free), next(free)
            _add_entry(broker, advertised, own)
            ports[-1][advertised] = own
        cluster.launch()
    for cluster in clusters:
        cluster.wait_ready()
    found = [Proxied(cluster=cluster, proxies=Proxies(some)) for cluster, some in zip(clusters, ports, strict=True)]
    try:
        yield found
    finally:
        for one in found:
            one.proxies.close()


def _add_entry(broker: Broker, advertised: int, own: int) -> None:
    """Write a listener ENTRY into the broker's file: the port it advertises, and the one it listens at."""
    more = {
        "listeners": f"ENTRY://{LOOPBACK}:{own}",
        "advertised.listeners": f"ENTRY://{LOOPBACK}:{advertised}",
        "listener.security.protocol.map": "ENTRY:PLAINTEXT",
    }
    lines = []
    for line in broker.properties_file.read_text().splitlines():
        name, equals, value = line.partition("=")
        kept = [one for one in value.split(",") if not one.startswith("ENTRY:")]
        lines.append(f"{name}={','.join([*kept, more[name]])}" if equals and name in more else line)
    broker.properties_file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    asyncio.run(serve([(listen, broker) for listen, broker in json.loads(sys.argv[1])]))
