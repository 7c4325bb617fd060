"""One broker of a local cluster: its files, its process, and what fault tests do to it."""

import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from ferry.dev import process, ready
from ferry.dev.jars import jars, java
from ferry.dev.process import ProcessRecord
from ferry.dev.properties import Node, logging_configuration
from ferry.dev.spec import ClusterSpec
from ferry.errors import Refused, Unreachable
from ferry.jvm import archive_options
from ferry.ports import LOOPBACK

START_SECONDS = 90.0
SIGNAL_SECONDS = 10.0
LOG_TAIL_LINES = 15
LOG_WINDOW_LINES = 1_000
FAILURE = re.compile(r" (ERROR|FATAL) |Exception|^Error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A node of a cluster that `up` made; it holds no state, so any process may act on the same broker.

    `directory` holds server.properties, data/, broker.log and process.json (the process that runs it now).
    """

    spec: ClusterSpec
    node: Node
    directory: Path

    @property
    def node_id(self) -> int:
        """The broker's id, from 1."""
        return self.node.node_id

    @property
    def address(self) -> str:
        """`host:port` of the first listener."""
        return self.address_of(self.spec.listeners[0].name)

    def address_of(self, listener: str) -> str:
        """Return `host:port` of the listener with that name."""
        return f"{LOOPBACK}:{self.node.ports[listener]}"

    @property
    def log(self) -> Path:
        """The file with everything the broker printed, over all its starts."""
        return self.directory / "broker.log"

    @property
    def properties_file(self) -> Path:
        """The server.properties that it starts from."""
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        """The broker's log directory."""
        return self.directory / "data"

    @property
    def record(self) -> ProcessRecord | None:
        """The process that was started last for this broker, whether or not it lives."""
        return ProcessRecord.read(self.directory / "process.json")

    @property
    def pid(self) -> int | None:
        """The pid of the running broker; None when it does not run."""
        record = self.record
        return record.pid if record is not None and process.find(record) else None

    @property
    def state(self) -> str:
        """`running`, `paused` or `stopped`."""
        record = self.record
        if record is None or not process.find(record):
            return "stopped"
        return "paused" if process.is_paused(record) else "running"

    def java_command(self, main: str, *arguments: str) -> list[str]:
        """Return the command line that runs a main class of this broker's Kafka version with its logging."""
        _, _, logging = logging_configuration(self.spec.version, self.directory)
        folder = jars(self.spec.version).resolve()  # an archive is tied to its jars' paths
        return [
            java(),
            f"-Xmx{self.spec.heap_mb}m",
            *archive_options(folder),
            *self.spec.java_options,
            "-Djava.awt.headless=true",
            logging,
            f"-Dkafka.logs.dir={self.directory}",
            "-cp",
            os.pathsep.join((f"{folder}/*", *self.spec.class_path)),
            main,
            *arguments,
        ]

    def launch(self) -> None:
        """Start the process and record it, without waiting until it answers.

        Raises:
            Refused: it runs already.
        """
        if self.pid is not None:
            raise Refused(f"broker {self.node_id} of {self.spec.name!r} already runs as process {self.pid}")
        properties = str(self.properties_file)
        started = process.spawn(self.java_command("kafka.Kafka", properties), argument=properties, log=self.log)
        started.write(self.directory / "process.json")

    def start(self, *, seconds: float = START_SECONDS) -> None:
        """Start the broker on its own data and ports and wait until it answers and sees itself alive.

        Raises:
            Refused: it runs already.
            Unreachable: it ended, or did not answer within `seconds`; the sentence carries the end of its log.
        """
        self.launch()
        self.wait_ready({self.node_id}, deadline=time.monotonic() + seconds)

    def wait_ready(self, node_ids: set[int], *, deadline: float) -> None:
        """Wait until the broker answers and sees all of `node_ids` alive; `deadline` is a time.monotonic().

        Raises:
            Unreachable: it ended or did not answer in time; the sentence carries the end of its log.
        """
        if not ready.wait_until(lambda: self._sees(node_ids), deadline=deadline, alive=self.is_alive):
            raise Unreachable(self.complaint())

    def kill(self, number: signal.Signals = signal.SIGKILL, *, seconds: float = 60.0) -> None:
        """Send a signal that ends the broker, and wait until the process is gone.

        Raises:
            Unreachable: it still lives after `seconds`.
        """
        record = self.record
        if record is None or not process.send(record, number):
            return
        if process.wait_gone([record], seconds=seconds):
            raise Unreachable(
                f"broker {self.node_id} of {self.spec.name!r} (process {record.pid}) did not end within "
                f"{seconds:g} s after {number.name}"
            )

    def pause(self) -> None:
        """Freeze the broker (SIGSTOP): connections stay open and nothing answers.

        Raises:
            Refused: it does not run.
        """
        self._signal(signal.SIGSTOP, paused=True)

    def resume(self) -> None:
        """Let a frozen broker continue (SIGCONT).

        Raises:
            Refused: it does not run.
        """
        self._signal(signal.SIGCONT, paused=False)

    def is_alive(self) -> bool:
        """Return whether its process lives, frozen or not."""
        return self.pid is not None

    def complaint(self) -> str:
        """Return why it does not answer, with the end of its log."""
        fate = "does not answer" if self.is_alive() else "ended"
        return (
            f"broker {self.node_id} of cluster {self.spec.name!r} {fate}; its log {self.log} ends with:\n{self.tail()}"
        )

    def tail(self, lines: int = LOG_TAIL_LINES) -> str:
        """Return the last failure in its log, without stack frames, else the log's last lines."""
        try:
            printed = self.log.read_text(errors="replace").splitlines()[-LOG_WINDOW_LINES:]
        except FileNotFoundError:
            return "(no log)"
        # A broker that fails logs that first, and then an orderly shutdown of a hundred lines.
        failures = [line for line in printed if FAILURE.search(line) and not line.startswith("\tat ")]
        return "\n".join((failures or printed)[-lines:])

    def _sees(self, node_ids: set[int]) -> bool:
        port = self.node.ports[self.spec.listeners[0].name]
        return ready.answers(LOOPBACK, port) and ready.sees(self.address, node_ids)

    def _signal(self, number: signal.Signals, *, paused: bool) -> None:
        """Send a signal and wait until it took effect, which takes a moment."""
        record = self.record
        if record is None or not process.send(record, number):
            raise Refused(f"broker {self.node_id} of {self.spec.name!r} does not run: start it before {number.name}")
        process.wait_for(lambda: process.is_paused(record) == paused, seconds=SIGNAL_SECONDS)
