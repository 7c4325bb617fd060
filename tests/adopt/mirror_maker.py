"""A real MirrorMaker 2, dedicated, on a flow's own file."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ferry.dev.jars import jars, java
from ferry.dev.ports import free_ports

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


class MirrorMaker:
    """One process; ends with the `with` block however that is left."""

    def __init__(self, folder: Path, config: Path, *more: str) -> None:
        """`config` is the flow's file, read as it is, with the listener of the workers and `more` lines behind it."""
        (rest,) = free_ports(1)
        properties, logging = folder / "mm2.properties", folder / "log4j2.properties"
        lines = (f"listeners = http://127.0.0.1:{rest}", *more)
        properties.write_text(config.read_text() + "".join(f"{line}\n" for line in lines))
        logging.write_text(LOGGING)
        self._log = folder / "mm2.log"
        self._command = [
            java(),
            *("-Xms64m", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true"),
            f"-Dlog4j2.configurationFile={logging}",
            *("-cp", f"{jars(VERSION)}/*", "org.apache.kafka.connect.mirror.MirrorMaker", str(properties)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MirrorMaker:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait for something that it does; fails with its log when it dies before."""
        assert self._process is not None
        until = time.monotonic() + SECONDS
        while not done():
            assert self._process.poll() is None, self._log.read_text()[-4000:]
            assert time.monotonic() < until, self._log.read_text()[-4000:]
            time.sleep(0.2)

    def stop(self) -> None:
        """As its manual says: it commits its positions."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(SECONDS)

    def kill(self) -> None:
        """As a power cut."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
