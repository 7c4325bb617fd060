"""A real MirrorMaker 2: dedicated, on a flow's own file; and a worker of Kafka Connect, to run its connectors on."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from ferry.dev.jars import jars, java
from ferry.ports import free_ports
from tests.tiers import ANSWER_S, PATIENCE

VERSION = "4.3.0"
SECONDS = 90

SETTINGS: Mapping[str, str] = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "dedicated.mode.enable.internal.rest": "true",
    "refresh.topics.interval.seconds": "2",
    "sync.topic.acls.enabled": "false",
}
"""What a single broker on each side asks for, beside the flow's own lines."""

LOGGING = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} [%t] %m%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
"""


class JavaProcess:
    """One process of Kafka's; ends with the `with` block however that is left."""

    def __init__(self, folder: Path, kind: str, properties: Path) -> None:
        """`kind` is its main class, which reads `properties`; its log is a file in `folder`."""
        logging = folder / "log4j2.properties"
        logging.write_text(LOGGING)
        self._log = folder / f"{kind.rpartition('.')[2]}.log"
        self._command = [
            java(),
            *("-Xms64m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"),
            f"-Dlog4j2.configurationFile={logging}",
            *("-cp", f"{jars(VERSION)}/*", kind, str(properties)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for something that it does; fails with its log when it dies before."""
        assert self._process is not None
        until = time.monotonic() + SECONDS * PATIENCE
        while not done():
            assert self._process.poll() is None, self._log.read_text()[-4000:]
            assert time.monotonic() < until, self._log.read_text()[-4000:]
            time.sleep(0.2)

    def stop(self) -> None:
        """As its manual says: it commits its positions."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(SECONDS * PATIENCE)

    def kill(self) -> None:
        """As a power cut."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class MirrorMaker(JavaProcess):
    """A dedicated one."""

    def __init__(self, folder: Path, config: Path, *more: str) -> None:
        """`config` is the flow's file, read as it is, with the listener of the workers and `more` lines behind it."""
        (rest,) = free_ports(1)
        properties = folder / "mm2.properties"
        lines = (f"listeners = http://127.0.0.1:{rest}", *more)
        properties.write_text(config.read_text() + "".join(f"{line}\n" for line in lines))
        super().__init__(folder, "org.apache.kafka.connect.mirror.MirrorMaker", properties)


class ConnectWorker(JavaProcess):
    """A worker of Kafka Connect whose topics are on `bootstrap`, under names that end in `mark`."""

    def __init__(self, folder: Path, bootstrap: str, mark: str) -> None:
        (rest,) = free_ports(1)
        self._url = f"http://127.0.0.1:{rest}"
        topics = {kind: f"{kind}-{mark}" for kind in ("offset", "config", "status")}
        self.offsets_topic, self.status_topic = topics["offset"], topics["status"]
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": f"connect-{mark}",
            "listeners": self._url,
            "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
            "offset.storage.partitions": "3",
            "status.storage.partitions": "1",
            **{f"{kind}.storage.topic": name for kind, name in topics.items()},
            **{f"{kind}.storage.replication.factor": "1" for kind in topics},
        }
        properties = folder / "connect.properties"
        properties.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        super().__init__(folder, "org.apache.kafka.connect.cli.ConnectDistributed", properties)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Its REST API; None while it does not answer, or has nothing to say."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", method=method, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                return json.loads(answer.read() or b"null")
        except OSError:  # also what is not there yet, and a rebalance
            return None

    def state(self, connector: str) -> str | None:
        """What the worker says of a connector; that of its tasks when one of them is another."""
        told = self.ask("GET", f"/connectors/{connector}/status") or {}
        states = [one["state"] for one in (told.get("connector"), *told.get("tasks", ())) if one]
        return next((state for state in states if state != states[0]), states[0]) if states else None
