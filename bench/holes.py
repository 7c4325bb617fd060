"""A topic with holes, made by the log cleaner, and the same records in a topic without."""

from __future__ import annotations

import time
from dataclasses import replace

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from data import Shape, write
from equality import fingerprint

from ferry.dev import RunningCluster

CLEANER_SECONDS = 300.0


def whole(shape: Shape) -> Shape:
    """Return the shape of the topic without holes, which is not compacted."""
    return replace(shape, topic=f"{shape.topic}-whole", hole_every=0)


def write_both(bootstrap: str, shape: Shape) -> None:
    """Write both topics; from then on the cleaner of broker 1 rests for a tenth of a second at most."""
    write(bootstrap, whole(shape))
    write(bootstrap, shape)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entry = ConfigEntry("log.cleaner.backoff.ms", "100", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def wait_until_cleaned(cluster: RunningCluster, shape: Shape) -> None:
    """Wait until the cleaner has removed what it can: it leaves the newest segments."""
    until, before = time.monotonic() + CLEANER_SECONDS, 0
    while (left := records(cluster, shape.topic)) != before or left == shape.records:
        assert time.monotonic() < until, f"the cleaner left {left} of {shape.records} records in {CLEANER_SECONDS} s"
        before = left
        time.sleep(1.0)


def records(cluster: RunningCluster, topic: str) -> int:
    """Count the data records of a topic, by the broker's own files."""
    return sum(found for _, _, found in fingerprint(cluster, topic).values())
