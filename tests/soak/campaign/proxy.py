"""A TCP proxy in front of each broker, which makes the faults of a network; all in one process, which obeys lines.

```
python -m tests.soak.campaign.proxy '[[LISTEN_PORT, BROKER_PORT], ...]'
in   {"port": LISTEN_PORT, "mode": "delay", "value": 0.2}     one line each; "cut" closes what is open and passes on
out  ready                                                   once it listens
```
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

LOOPBACK = "127.0.0.1"
MODES = ("pass", "cut", "hang", "delay", "trickle", "lost-answers", "lost-requests", "refuse")
PIECE = 1 << 18
TRICKLE_BYTES = 16 << 10
TRICKLE_S = 0.05

ROOT = Path(__file__).resolve().parents[3]


class Gate:
    """What lies between clients and one broker."""

    def __init__(self, broker: int) -> None:
        self._broker = broker
        self._mode = "pass"
        self._value = 0.0
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()

    def change(self, mode: str, value: float) -> None:
        """Behave so from now on. A connection that lost bytes is closed when its fault ends, for it is out of step."""
        if mode in ("cut", "refuse") or self._mode.startswith("lost"):
            for writer in list(self._open):
                writer.close()
        self._mode, self._value = ("pass" if mode == "cut" else mode), value
        self._changed.set()
        self._changed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it."""
        if self._mode == "refuse":
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(LOOPBACK, self._broker)
        except OSError:
            writer.close()
            return
        self._open |= {writer, far_writer}
        carried = (
            asyncio.create_task(self._carry(reader, far_writer, "lost-requests")),
            asyncio.create_task(self._carry(far_reader, writer, "lost-answers")),
        )
        with suppress(asyncio.CancelledError):  # the process ends
            await asyncio.wait(carried, return_when=asyncio.FIRST_COMPLETED)
        for task in carried:
            task.cancel()
        for end in (writer, far_writer):
            self._open.discard(end)
            with suppress(OSError):
                end.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: str) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE):
                while self._mode == "hang":
                    await self._changed.wait()
                if self._mode == losing:
                    continue
                if self._mode == "delay":
                    await asyncio.sleep(self._value)
                size = TRICKLE_BYTES if self._mode == "trickle" else PIECE
                for at in range(0, len(data), size):
                    writer.write(data[at : at + size])
                    await writer.drain()
                    if size == TRICKLE_BYTES:
                        await asyncio.sleep(TRICKLE_S)


async def serve(ports: Sequence[tuple[int, int]]) -> None:
    """Serve until standard input ends."""
    gates: dict[int, Gate] = {}
    for listen, broker in ports:
        gates[listen] = Gate(broker)
        await asyncio.start_server(gates[listen].serve, LOOPBACK, listen)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        asked = json.loads(line)
        gates[asked["port"]].change(asked["mode"], asked["value"])


class Proxies:
    """The process, seen from the campaign; `ports` are broker ports by the ports in front of them."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        self._ports = tuple(ports)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.campaign.proxy", json.dumps(list(ports.items()))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def change(self, port: int, mode: str, value: float = 0.0) -> None:
        """Have the proxy at `port` behave so."""
        assert mode in MODES
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"port": port, "mode": mode, "value": value}) + "\n")
        self._process.stdin.flush()

    def heal(self) -> None:
        """Pass everything on."""
        for port in self._ports:
            self.change(port, "pass")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


if __name__ == "__main__":
    asyncio.run(serve([(listen, broker) for listen, broker in json.loads(sys.argv[1])]))
