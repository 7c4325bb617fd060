"""Clusters on this machine: started, found again, and stopped, through records in a home folder."""

import base64
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ferry.dev import process, ready
from ferry.dev.broker import START_SECONDS, Broker
from ferry.dev.files import locked, read_json, write_json
from ferry.dev.properties import CONTROLLER, Node, logging_configuration, render, server_properties
from ferry.dev.spec import ClusterSpec, Listener, differences
from ferry.errors import BadInput, Refused, Unreachable
from ferry.ports import free_ports

STATE_FILE = "cluster.json"
GRACE_SECONDS = 15.0
BIND_TRIES = 3
BIND_FAILURES = ("Address already in use", "BindException")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCluster:
    """A cluster whose processes `up` started; a value that any process can make again with `attach`."""

    spec: ClusterSpec
    cluster_id: str
    directory: Path
    brokers: tuple[Broker, ...]

    @property
    def name(self) -> str:
        """The name that was given to `up`."""
        return self.spec.name

    @property
    def bootstrap(self) -> str:
        """The `host:port` of the first listener of every broker, separated by commas."""
        return self.bootstrap_of(self.spec.listeners[0].name)

    def bootstrap_of(self, listener: str) -> str:
        """Return the `host:port` of every broker's listener with that name, separated by commas."""
        return ",".join(broker.address_of(listener) for broker in self.brokers)

    def broker(self, node_id: int) -> Broker:
        """Return the broker with that id (from 1), for example a partition's leader."""
        return next(broker for broker in self.brokers if broker.node_id == node_id)

    def wait_ready(self, *, seconds: float = START_SECONDS) -> None:
        """Wait until all brokers answer, see each other, and every coordinator has loaded.

        Raises:
            Unreachable: not within `seconds`, or a broker ended; the sentence carries the end of its log.
        """
        deadline = time.monotonic() + seconds
        everyone = {broker.node_id for broker in self.brokers}
        for broker in self.brokers:
            broker.wait_ready(everyone, deadline=deadline)
        first = self.brokers[0]

        def loaded() -> bool:
            return ready.coordinators_loaded(
                first.address,
                transaction_partitions=self._setting("transaction.state.log.num.partitions"),
                group_partitions=self._setting("offsets.topic.num.partitions"),
            )

        if not ready.wait_until(loaded, deadline=deadline, alive=self._all_alive):
            stopped = [broker for broker in self.brokers if not broker.is_alive()]
            raise Unreachable((stopped or [first])[0].complaint())

    def stop(self, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """End all its brokers; the data stays."""
        records = [broker.record for broker in self.brokers]
        process.stop([record for record in records if record is not None], grace_seconds=grace_seconds)

    def start(self, *, seconds: float = START_SECONDS) -> None:
        """Start the brokers that do not run, on their data and ports, and wait until the cluster serves.

        Raises:
            Unreachable: not within `seconds`, or a broker ended; the sentence carries the end of its log.
        """
        self.launch()
        self.wait_ready(seconds=seconds)

    def launch(self) -> None:
        """Start the brokers that do not run, without waiting."""
        for broker in self.brokers:
            if not broker.is_alive():
                broker.launch()

    def _setting(self, name: str) -> int:
        nodes = tuple(broker.node for broker in self.brokers)
        return int(server_properties(self.spec, nodes, nodes[0], self.brokers[0].data)[name])

    def _all_alive(self) -> bool:
        return all(broker.is_alive() for broker in self.brokers)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStatus:
    """What is known of a broker without asking it: its state is `running`, `paused` or `stopped`."""

    node_id: int
    address: str
    state: str
    pid: int | None
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """A cluster's records and processes as they are now; `state` is that of all brokers, else `partial`."""

    name: str
    version: str
    state: str
    bootstrap: str
    cluster_id: str
    directory: str
    brokers: tuple[BrokerStatus, ...]


def up(spec: ClusterSpec, *, home: Path, seconds: float = START_SECONDS) -> RunningCluster:
    """Start one cluster below `home` and wait until it serves.

    A cluster that `home` has already continues with its data and ports; a running one is left alone.

    Raises:
        BadInput: jars or Java are missing, or `home` has the name with another spec.
        Refused: Kafka's StorageTool declined to format, or no port is free.
        Unreachable: a broker ended or did not answer within `seconds`; what this call started is stopped again.
    """
    return up_all([spec], home=home, seconds=seconds)[0]


def up_all(specs: Sequence[ClusterSpec], *, home: Path, seconds: float = START_SECONDS) -> tuple[RunningCluster, ...]:
    """Start clusters at the same time below `home` and wait until all serve.

    A cluster that `home` has already continues with its data and ports; a running one is left alone.

    Raises:
        BadInput: jars or Java are missing, or `home` has the name with another spec.
        Refused: Kafka's StorageTool declined to format, or no port is free.
        Unreachable: a broker ended or did not answer within `seconds`; what this call started is stopped again.
    """
    home = home.resolve()
    with locked(home), ExitStack() as on_failure:
        started = [_launched(spec, home, on_failure) for spec in specs]
        clusters = tuple(_ready(cluster, home, on_failure, seconds=seconds) for cluster in started)
        on_failure.pop_all()
    return clusters


def down(
    home: Path, names: Iterable[str] | None = None, *, delete: bool = False, grace_seconds: float = GRACE_SECONDS
) -> tuple[str, ...]:
    """Stop the clusters of `home` (those in `names`, or all); `delete` removes their data and logs, too.

    Only processes that `up` recorded are ended, and only while pid, start time and arguments still match.

    Raises:
        BadInput: `home` does not have one of `names`.
    """
    home = home.resolve()
    if not home.exists():
        known: tuple[RunningCluster, ...] = ()
    else:
        known = _known(home)
    chosen = known if names is None else tuple(_named(known, name, home) for name in names)
    if not chosen:
        return ()
    with locked(home):
        records = [broker.record for cluster in chosen for broker in cluster.brokers]
        process.stop([record for record in records if record is not None], grace_seconds=grace_seconds)
        if delete:
            for cluster in chosen:
                shutil.rmtree(cluster.directory)
    return tuple(cluster.name for cluster in chosen)


def status(home: Path) -> tuple[ClusterStatus, ...]:
    """Return the clusters of `home`, by name, and whether their processes live."""
    return tuple(_status(cluster) for cluster in _known(home.resolve()))


def attach(home: Path, name: str) -> RunningCluster:
    """Return the cluster that `up` made below `home`, in this or another process.

    Raises:
        BadInput: `home` does not have `name`.
    """
    return _named(_known(home.resolve()), name, home)


def known_as(spec: ClusterSpec, home: Path) -> RunningCluster | None:
    """Return the cluster of that name below `home`, if there is one.

    Raises:
        BadInput: it has another spec; the sentence names what differs.
    """
    cluster = _read(home / spec.name)
    if cluster is not None and cluster.spec != spec:
        found = differences(cluster.spec, spec)
        named = ", ".join(f"{name} {before} instead of {wanted}" for name, before, wanted in found)
        delete = f"ferry dev down --names {spec.name} --delete --home {home}"
        raise BadInput(
            f"cluster {spec.name!r} exists below {home} with other settings ({named}): call ferry dev up with those "
            f"that it has, or delete it and its data with {delete}, or choose another name with --names"
        )
    return cluster


def _launched(spec: ClusterSpec, home: Path, on_failure: ExitStack) -> RunningCluster:
    """Return the cluster with all its processes started; `on_failure` stops it again, unless it ran before."""
    cluster = known_as(spec, home) or create_cluster(spec, home / spec.name)
    if any(broker.is_alive() for broker in cluster.brokers):
        cluster.launch()
    else:
        on_failure.callback(cluster.stop, grace_seconds=0)
        cluster.launch()
    return cluster


def _ready(cluster: RunningCluster, home: Path, on_failure: ExitStack, *, seconds: float) -> RunningCluster:
    """Return the cluster once it serves; it is made again on other ports if another process took one of them first."""
    for _ in range(BIND_TRIES - 1):
        try:
            cluster.wait_ready(seconds=seconds)
        except Unreachable as error:
            fresh = not any((broker.directory / "served").exists() for broker in cluster.brokers)
            if not fresh or not any(failure in str(error) for failure in BIND_FAILURES):
                raise
            cluster.stop(grace_seconds=0)
            shutil.rmtree(cluster.directory)
            cluster = _launched(cluster.spec, home, on_failure)
        else:
            break
    else:
        cluster.wait_ready(seconds=seconds)
    for broker in cluster.brokers:
        (broker.directory / "served").touch()
    return cluster


def create_cluster(spec: ClusterSpec, directory: Path) -> RunningCluster:
    """Make the files, the formatted data and the record of a new cluster; nothing remains when that fails."""
    names = [*(listener.name for listener in spec.listeners), CONTROLLER]
    ports = iter(free_ports(len(names) * spec.brokers))
    nodes = tuple(
        Node(node_id=number, ports={name: next(ports) for name in names}) for number in range(1, spec.brokers + 1)
    )
    identity = new_cluster_id()
    cluster = _cluster(spec, nodes, identity, directory)
    shutil.rmtree(directory, ignore_errors=True)
    with ExitStack() as on_failure:
        on_failure.callback(shutil.rmtree, directory, ignore_errors=True)
        for broker in cluster.brokers:
            broker.directory.mkdir(parents=True)
            settings = server_properties(spec, nodes, broker.node, broker.data)
            broker.properties_file.write_text(render(settings))
            path, content, _ = logging_configuration(spec.version, broker.directory)
            path.write_text(content)
        _format(cluster)
        write_json(
            directory / STATE_FILE,
            {"spec": asdict(spec), "cluster_id": identity, "nodes": [asdict(node) for node in nodes]},
        )
        on_failure.pop_all()
    return cluster


def new_cluster_id() -> str:
    """Return a random id as Kafka writes them: 16 bytes in URL-safe base64, without a leading '-'.

    A leading '-' would be an option to tools.
    """
    first, *rest = uuid.uuid4().bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).decode().rstrip("=")


def _format(cluster: RunningCluster) -> None:
    """Format the data folders of all nodes at the same time with Kafka's StorageTool."""
    tools = [
        subprocess.Popen(
            broker.java_command(
                "kafka.tools.StorageTool",
                "format",
                "--cluster-id",
                cluster.cluster_id,
                "--config",
                str(broker.properties_file),
                *cluster.spec.format_arguments,
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for broker in cluster.brokers
    ]
    outputs = [tool.communicate()[0] for tool in tools]
    for tool, output in zip(tools, outputs, strict=True):
        if tool.returncode:
            raise Refused(
                f"Kafka's StorageTool would not format cluster {cluster.name!r}; it said:\n{output[-2000:].strip()}"
            )


def _cluster(spec: ClusterSpec, nodes: tuple[Node, ...], cluster_id: str, directory: Path) -> RunningCluster:
    brokers = tuple(Broker(spec=spec, node=node, directory=directory / f"broker-{node.node_id}") for node in nodes)
    return RunningCluster(spec=spec, cluster_id=cluster_id, directory=directory, brokers=brokers)


def _read(directory: Path) -> RunningCluster | None:
    """Return the cluster recorded in `directory`, or None."""
    content = read_json(directory / STATE_FILE)
    if content is None:
        return None
    try:
        nodes = tuple(Node(node_id=node["node_id"], ports=node["ports"]) for node in content["nodes"])
        return _cluster(_spec(content["spec"]), nodes, content["cluster_id"], directory)
    except (KeyError, TypeError, AttributeError) as error:
        damage = f"{directory / STATE_FILE} is damaged ({type(error).__name__}: {error})"
        raise BadInput(f"{damage}: delete it once no broker of it runs") from error


def _spec(content: dict[str, Any]) -> ClusterSpec:
    return ClusterSpec(
        name=content["name"],
        brokers=content["brokers"],
        version=content["version"],
        properties=content["properties"],
        listeners=tuple(Listener(name=item["name"], protocol=item["protocol"]) for item in content["listeners"]),
        format_arguments=tuple(content["format_arguments"]),
        java_options=tuple(content["java_options"]),
        heap_mb=content["heap_mb"],
        racks=content["racks"],
        class_path=tuple(content.get("class_path", ())),
    )


def _known(home: Path) -> tuple[RunningCluster, ...]:
    found = [_read(path.parent) for path in sorted(home.glob(f"*/{STATE_FILE}"))]
    return tuple(cluster for cluster in found if cluster is not None)


def _named(known: Iterable[RunningCluster], name: str, home: Path) -> RunningCluster:
    names = []
    for cluster in known:
        if cluster.name == name:
            return cluster
        names.append(cluster.name)
    raise BadInput(
        f"no cluster {name!r} is below {home}: name one that ferry dev status shows ({', '.join(names) or 'none'})"
    )


def _status(cluster: RunningCluster) -> ClusterStatus:
    brokers = tuple(
        BrokerStatus(
            node_id=broker.node_id, address=broker.address, state=broker.state, pid=broker.pid, log=str(broker.log)
        )
        for broker in cluster.brokers
    )
    states = {broker.state for broker in brokers}
    return ClusterStatus(
        name=cluster.name,
        version=cluster.spec.version,
        state=states.pop() if len(states) == 1 else "partial",
        bootstrap=cluster.bootstrap,
        cluster_id=cluster.cluster_id,
        directory=str(cluster.directory),
        brokers=brokers,
    )
