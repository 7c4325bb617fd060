"""MirrorMaker 2 as a contender: dedicated, exactly once, tuned for throughput."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from usage import TreeMeter, Usage
from watch import Arrival, watch

from ferry.dev.jars import jars, java
from ferry.ports import free_ports

VERSION = "4.3.0"

SETTINGS = """\
clusters = {alias}, target
{alias}.bootstrap.servers = {source}
target.bootstrap.servers = {target}
{alias}->target.enabled = true
{alias}->target.topics = {topic}
target->{alias}.enabled = false
tasks.max = {tasks}
replication.factor = 1
offset-syncs.topic.replication.factor = 1
config.storage.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
# Exactly once is a switch of the target cluster; it needs the workers' internal listener.
target.exactly.once.source.support = enabled
dedicated.mode.enable.internal.rest = true
listeners = http://127.0.0.1:{rest}
# Nothing else may cost it time.
emit.heartbeats.enabled = false
sync.topic.acls.enabled = false
sync.topic.configs.enabled = false
refresh.topics.enabled = false
# Each poll is one transaction: large polls, large fetches, large batches.
{alias}.consumer.isolation.level = read_committed
{alias}.consumer.max.poll.records = 50000
{alias}.consumer.fetch.min.bytes = 1048576
{alias}.consumer.fetch.max.wait.ms = 100
{alias}.consumer.fetch.max.bytes = 67108864
{alias}.consumer.max.partition.fetch.bytes = 16777216
{alias}.consumer.receive.buffer.bytes = 4194304
target.producer.compression.type = lz4
target.producer.batch.size = 1000000
target.producer.linger.ms = 20
target.producer.buffer.memory = 268435456
target.producer.max.request.size = 8388608
target.producer.send.buffer.bytes = 4194304
"""

WITHOUT_GROUPS = """\
emit.checkpoints.enabled = false
refresh.groups.enabled = false
"""

WITH_GROUPS = """\
{alias}->target.groups = {groups}
checkpoints.topic.replication.factor = 1
emit.checkpoints.interval.seconds = 5
refresh.groups.interval.seconds = 5
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 5
"""

LOGGING = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} [%t] %m%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """What MirrorMaker 2 took, from the start of its process."""

    arrival: Arrival
    peak_mb: float

    @property
    def whole(self) -> Usage:
        """Return what it took from its start until it has caught up."""
        parts = self.arrival.starting, self.arrival.copying
        return Usage(wall=sum(part.wall for part in parts), cpu=sum(part.cpu for part in parts))


def mirror(
    folder: Path,
    alias: str,
    source: str,
    target: str,
    *,
    topic: str,
    partitions: int,
    records: int,
    tasks: int,
    groups: str | None = None,
    before_end: Callable[[], None] | None = None,
    more: str = "",
    classes: Path | None = None,
) -> Mirrored:
    """Copy `topic` to `{alias}.{topic}` with a new MirrorMaker 2, and stop it when it has caught up.

    With `groups`, a pattern, it also writes the offsets of groups; `before_end` waits for what else it has to do.
    `more` are settings, and `classes` is a folder of classes that it needs in addition to Kafka's own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (rest,) = free_ports(1)
    properties, logging = folder / "mm2.properties", folder / "log4j2.properties"
    text = SETTINGS.format(alias=alias, source=source, target=target, topic=topic, tasks=tasks, rest=rest)
    text += WITHOUT_GROUPS if groups is None else WITH_GROUPS.format(alias=alias, groups=groups)
    properties.write_text(text + more)
    logging.write_text(LOGGING)
    command = [
        java(),
        # These are the options of connect-mirror-maker.sh.
        *("-Xms256m", "-Xmx2g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true"),
        f"-Dlog4j2.configurationFile={logging}",
        *("-cp", ":".join([f"{jars(VERSION)}/*", *([str(classes)] if classes else [])])),
        *("org.apache.kafka.connect.mirror.MirrorMaker", str(properties)),
    ]
    with (folder / "mm2.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        try:
            meter = TreeMeter(process.pid)
            arrival = watch(target, f"{alias}.{topic}", partitions, records, meter.cpu, lambda: process.poll() is None)
            if before_end is not None:
                before_end()
        finally:
            process.kill()
            process.wait()
    return Mirrored(arrival=arrival, peak_mb=meter.peak_mb)
