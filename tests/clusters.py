"""Real brokers for tests, started once per session when the first test asks for them."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.dev import ClusterSpec, RunningCluster, guard, up, up_all
from ferry.dev.spec import PLAINTEXT, Listener

KEPT = {"log.retention.ms": "-1", "log.retention.check.interval.ms": str(24 * 60 * 60 * 1000)}
"""Records that tests date years back stay: a broker looks for old ones 30 s after it starts, then every interval."""

SASL = Listener(name="SASL", protocol="SASL_PLAINTEXT")
USER = "ferry"
PASSWORDS = {
    name: tuple(f"planted-{name}-{part}-{secrets.token_hex(8)}" for part in ("a", "b", "c"))
    for name in ("source", "target")
}
"""Passwords of USER at the SASL listeners (PLAIN): each is its parts joined, so that every part can be looked for."""


def _with_login(name: str) -> ClusterSpec:
    password = "".join(PASSWORDS[name])
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return ClusterSpec(
        name=name,
        listeners=(PLAINTEXT, SASL),
        properties={
            **KEPT,
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f'{module} required user_{USER}="{password}";',
        },
    )


APART = pytest.StashKey[dict[str, RunningCluster]]()
"""The running clusters that few files ask for, by their fixtures."""

SOURCE = _with_login("source")
TARGET = _with_login("target")
THIRD = ClusterSpec(name="third", properties=KEPT)
THREE = ClusterSpec(name="three", brokers=3, heap_mb=384, properties=KEPT)
OLD = ClusterSpec(name="old", version="3.9.1", properties=KEPT)
VERSIONS = ("4.3.0", OLD.version)
"""The versions of Kafka of which tests ask facts."""


@contextmanager
def of_version(spec: ClusterSpec, version: str, home: Path) -> Iterator[RunningCluster]:
    """A cluster of a version, which its name has, too. It is stopped at the end."""
    cluster = up(replace(spec, name=f"{spec.name}-{version.replace('.', '-')}", version=version), home=home)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the clusters of few files when the next file does not ask for them: at rest they take CPU time, too."""
    running = item.config.stash.get(APART, {})
    if not running or nextitem is None or nextitem.path == item.path:
        return
    tests = (other for other in item.session.items if other.path == nextitem.path)
    wanted = {name for test in tests for name in getattr(test, "fixturenames", ())}
    for name in running.keys() - wanted:
        running.pop(name).stop()


@pytest.fixture(scope="session")
def cluster_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of the session's clusters; its brokers end with the session, even when that is killed."""
    home = tmp_path_factory.mktemp("clusters")
    with guard(home):
        yield home


@pytest.fixture(scope="session")
def _pair(cluster_home: Path) -> tuple[RunningCluster, ...]:
    return up_all([SOURCE, TARGET], home=cluster_home)


@pytest.fixture
def source_cluster(_pair: tuple[RunningCluster, ...], _revive: Callable[[RunningCluster], None]) -> RunningCluster:
    """One broker 4.3.0; started together with `target_cluster`."""
    _revive(_pair[0])
    return _pair[0]


@pytest.fixture
def target_cluster(_pair: tuple[RunningCluster, ...], _revive: Callable[[RunningCluster], None]) -> RunningCluster:
    """One broker 4.3.0; started together with `source_cluster`."""
    _revive(_pair[1])
    return _pair[1]


@pytest.fixture(scope="session")
def _third(cluster_home: Path) -> RunningCluster:
    return up_all([THIRD], home=cluster_home)[0]


@pytest.fixture
def third_cluster(
    _third: RunningCluster, _revive: Callable[[RunningCluster], None], request: pytest.FixtureRequest
) -> RunningCluster:
    """One broker 4.3.0, beside `source_cluster` and `target_cluster`, for flows between three clusters."""
    request.config.stash.setdefault(APART, {})["third_cluster"] = _third
    _revive(_third)
    return _third


@pytest.fixture(scope="session")
def _three(cluster_home: Path) -> RunningCluster:
    return up_all([THREE], home=cluster_home)[0]


@pytest.fixture
def three_brokers(
    _three: RunningCluster, _revive: Callable[[RunningCluster], None], request: pytest.FixtureRequest
) -> RunningCluster:
    """Three brokers 4.3.0 with min.insync.replicas 2."""
    request.config.stash.setdefault(APART, {})["three_brokers"] = _three
    _revive(_three)
    return _three


@pytest.fixture(scope="session")
def _old(cluster_home: Path) -> RunningCluster:
    return up_all([OLD], home=cluster_home)[0]


@pytest.fixture
def old_cluster(
    _old: RunningCluster, _revive: Callable[[RunningCluster], None], request: pytest.FixtureRequest
) -> RunningCluster:
    """One broker 3.9.1, whose transactions are of version 1."""
    request.config.stash.setdefault(APART, {})["old_cluster"] = _old
    _revive(_old)
    return _old


@pytest.fixture
def _revive() -> Iterator[Callable[[RunningCluster], None]]:
    """Give each test a whole cluster, whatever the test before it killed or froze."""
    used: list[RunningCluster] = []

    def revive(cluster: RunningCluster) -> None:
        used.append(cluster)
        repair(cluster)

    yield revive
    for cluster in used:
        repair(cluster)


def repair(cluster: RunningCluster) -> None:
    """Resume frozen brokers, start ended ones and wait until the cluster serves; costs nothing when all run.

    The controller has fenced a broker that was frozen for longer than its session: until it is heard again, no topic
    can be created.
    """
    states = {broker.node_id: broker.state for broker in cluster.brokers}
    for broker in cluster.brokers:
        if states[broker.node_id] == "paused":
            broker.resume()
    if set(states.values()) != {"running"}:
        cluster.start()
