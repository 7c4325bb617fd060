"""YARN with one node on this machine, whose files are those of the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import httpx
import pyspark

from ferry.ports import free_ports
from tests.spark.jobs import BIN, LOCAL, QUICK, ROOT, service, until

JARS = ROOT / ".yarn"
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
SERVER = "org.apache.hadoop.yarn.server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Yarn:
    """A ResourceManager and a NodeManager."""

    address: str
    """Of the REST API."""
    conf: Path
    """The folder for HADOOP_CONF_DIR."""

    def applications(self) -> dict[str, str]:
        """The state of each application, by its id."""
        found = httpx.get(f"{self.address}/ws/v1/cluster/apps", timeout=30).json()["apps"] or {}
        return {app["id"]: app["state"] for app in found.get("app", [])}

    @property
    def environment(self) -> dict[str, str]:
        """What spark-submit needs."""
        return {**LOCAL, "HADOOP_CONF_DIR": str(self.conf), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    @property
    def connection(self) -> dict[str, Any]:
        """The Spark connection."""
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": self.address}
        return {"conn_type": "spark", "host": "yarn", "extra": extra}

    @property
    def spark(self) -> dict[str, str]:
        """Properties of a small job that finds Spark's jars where they are."""
        return {
            "spark.yarn.jars": f"local:{SPARK_JARS}/*",
            "spark.yarn.stagingDir": self.conf.parent.joinpath("staging").as_uri(),
            "spark.yarn.am.waitTime": "300s",
            "spark.executor.instances": "2",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": QUICK,
            "spark.yarn.maxAppAttempts": "1",
        }


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """Start YARN on 127.0.0.1; all of it ends with the block."""
    names = ("resourcemanager", "scheduler", "tracker", "admin", "web", "localizer", "node_web")
    at = {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}
    conf = folder / "conf"
    conf.mkdir()
    write(conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")})
    write(
        conf / "yarn-site.xml",
        {
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yarn.resourcemanager.address": at["resourcemanager"],
            "yarn.resourcemanager.scheduler.address": at["scheduler"],
            "yarn.resourcemanager.resource-tracker.address": at["tracker"],
            "yarn.resourcemanager.admin.address": at["admin"],
            "yarn.resourcemanager.webapp.address": at["web"],
            "yarn.resourcemanager.scheduler.class": f"{SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.address": "127.0.0.1:0",
            "yarn.nodemanager.localizer.address": at["localizer"],
            "yarn.nodemanager.webapp.address": at["node_web"],
            "yarn.nodemanager.resource.memory-mb": "8192",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.local-dirs": str(folder / "local"),
            "yarn.nodemanager.log-dirs": str(folder / "logs"),
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.9",
        },
    )
    path = os.pathsep.join([str(conf), str(JARS / "*"), str(SPARK_JARS / "*")])
    with ExitStack() as stack:
        for part in ("resourcemanager.ResourceManager", "nodemanager.NodeManager"):
            command = ["java", "-Xmx384m", *QUICK.split()[:2], "-cp", path, f"{SERVER}.{part}"]
            stack.enter_context(service(command, folder / f"{part}.log"))
        address = f"http://{at['web']}"
        until(lambda: nodes(address) == 1, "YARN's one node")
        yield Yarn(address=address, conf=conf)


def nodes(address: str) -> int:
    """How many nodes are at work."""
    try:
        metrics = httpx.get(f"{address}/ws/v1/cluster/metrics", timeout=5).json()["clusterMetrics"]
    except (httpx.HTTPError, ValueError):
        return 0
    return int(metrics["activeNodes"])


def write(path: Path, settings: dict[str, str]) -> None:
    """Write a file of Hadoop's settings."""
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    ]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>"]))
