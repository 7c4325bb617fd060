"""The two clusters of the bench: a source that is also reachable from far away, and a target."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ferry.dev import ClusterSpec, Listener, RunningCluster, guard, up_all
from ferry.ports import LOOPBACK, free_ports

FAR = "FAR"
ROUND_TRIP_MS = 50
JAVA_OPTIONS = ("-XX:+UseG1GC", "-Xms1g")
"""Brokers at their usual speed: the full compiler, unlike those of the tests."""

PROMPT_DELETION = {"log.segment.delete.delay.ms": "1000"}
"""Ten thousand deleted partitions, kept for a minute, would use up the memory maps that a process may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The clusters of a bench, and its folder."""

    source: RunningCluster
    target: RunningCluster
    folder: Path
    far_source: str
    """Bootstrap address of the source through the delay proxy."""


@contextmanager
def field(folder: Path) -> Iterator[Field]:
    """Start both clusters and the delay proxy; all end with their data when the block ends."""
    home = folder / "clusters"
    with guard(home):
        listeners = (Listener(name="PLAINTEXT", protocol="PLAINTEXT"), Listener(name=FAR, protocol="PLAINTEXT"))
        source, target = up_all(
            [
                ClusterSpec(name="source", listeners=listeners, java_options=JAVA_OPTIONS, heap_mb=1024),
                ClusterSpec(name="target", java_options=JAVA_OPTIONS, heap_mb=1024, properties=PROMPT_DELETION),
            ],
            home=home,
        )
        (proxy_port,) = free_ports(1)
        _advertise(source, proxy_port)
        _, _, far_port = source.bootstrap_of(FAR).partition(":")
        command = [sys.executable, str(Path(__file__).with_name("proxy.py")), str(proxy_port), far_port]
        proxy = subprocess.Popen([*command, str(ROUND_TRIP_MS)], stdout=subprocess.PIPE)
        try:
            assert proxy.stdout is not None
            proxy.stdout.readline()
            yield Field(source=source, target=target, folder=folder, far_source=f"{LOOPBACK}:{proxy_port}")
        finally:
            proxy.kill()
            proxy.wait()


def _advertise(cluster: RunningCluster, port: int) -> None:
    """Let the broker send its FAR clients to `port`: a client connects to the address in the metadata."""
    cluster.stop()
    for broker in cluster.brokers:
        there = broker.address_of(FAR)
        settings = broker.properties_file.read_text()
        advertised = re.compile(rf"^(advertised\.listeners=.*{FAR}://){re.escape(there)}", re.MULTILINE)
        broker.properties_file.write_text(advertised.sub(rf"\g<1>{LOOPBACK}:{port}", settings))
    cluster.start()
