"""What all tests share: seeds, order, processes, Hypothesis profiles; the brokers are in tests/clusters.py."""

import gc
import os
import random
import re
import secrets
import socket
import subprocess
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.tiers import EXTRA, PATIENCE, QUICK, QUICK_SECONDS

pytest_plugins = ["tests.clusters", "tests.golden", "pytester"]

SEED_VARIABLE = "FERRY_SEED"
# Brokers that few files ask for; such files lie together, for these do not run beside others (tests/clusters.py).
RARE = ("third_cluster", "three_brokers", "old_cluster")
CLUSTER_FIXTURES = {"source_cluster", "target_cluster", *RARE, "dev_home"}
# Quick and pure first: a mistake shows before the first broker starts. Then the longest folder and what else is long,
# so that the processes of `pytest -n` end together.
ORDER = ("unit", "dev", "airflow", "spark", "cluster")
FOLDER_MARKERS = ("spark", "airflow", "chaos", "soak")
# Each folder stays in one process: what its session starts (an Airflow, two KDCs) is dear.
WHOLE_FOLDERS = {"airflow", "security"}

# Of those that need brokers these are first: they take minutes each, and the last ones to begin should take seconds.
LONG = {"airflow", "docker", "spark", "adopt", "security", "topologies", "chaos"} | {
    "test_drills.py",
    "test_switch.py",
    "test_moving_clients.py",
}

settings.register_profile("default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", parent=settings.get_profile("default"), max_examples=25, derandomize=True)
settings.register_profile("ci", parent=settings.get_profile("default"), max_examples=200)
settings.register_profile("soak", parent=settings.get_profile("default"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Choose the session's seed once: FERRY_SEED, else a fresh one that the header shows."""
    given = getattr(config, "workerinput", {}).get(SEED_VARIABLE) or os.environ.get(SEED_VARIABLE)
    config.stash[SEED] = int(given or secrets.randbits(32))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Give every process of `pytest -n` the seed that the header shows."""
    node.workerinput[SEED_VARIABLE] = node.config.stash[SEED]


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Deals whole files, or whole folders, to the processes of `pytest -n`, in their order."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in Path(file).parts[1:-1] if folder in WHOLE_FOLDERS), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Use ByFile. The plugin's own order, most tests first, would start with brokers."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed, so that a failing random test can be had again."""
    return f"ferry: {SEED_VARIABLE}={config.stash[SEED]}, Hypothesis profile {settings.get_current_profile_name()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder and by the brokers they ask for, and run their files in ORDER, pure tests first."""
    ranks = {}
    files: dict[Path, File] = {}
    for item in items:
        path = Path(item.nodeid.partition("::")[0]).parts[1:]
        folders = path[:-1]
        fixtures = set(getattr(item, "fixturenames", ()))
        if CLUSTER_FIXTURES & fixtures:
            item.add_marker("cluster")
        for marker in FOLDER_MARKERS:
            if marker in folders:
                item.add_marker(marker)
        if "/".join(path) in EXTRA:
            item.add_marker("extra")
        kinds = {marker.name for marker in item.iter_markers()} | ({"dev"} if "dev" in folders else set())
        if folders[:1] and folders[0] in QUICK and kinds.isdisjoint(("cluster", "process", "slow", *FOLDER_MARKERS)):
            item.add_marker("quick")
            if settings.get_current_profile_name() == "quick":
                item.add_marker(pytest.mark.timeout(QUICK_SECONDS), append=False)
        limit = item.get_closest_marker("timeout")
        seconds = float(item.config.getini("timeout") if limit is None else limit.args[0])
        item.add_marker(pytest.mark.timeout(seconds * PATIENCE), append=False)
        ranks[item] = max((ORDER.index(kind) for kind in kinds if kind in ORDER), default=0)
        file = files.setdefault(item.path, File(number=len(files), long=not LONG.isdisjoint(path)))
        file.rank = max(file.rank, ranks[item])
        file.rare |= fixtures.intersection(RARE)
    items.sort(key=lambda item: (files[item.path].place, ranks[item]))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over thousands of tests and all modules: they stay to the end."""
    gc.freeze()


@dataclass(kw_only=True)
class File:
    """What decides when a file's tests run."""

    number: int
    long: bool
    rank: int = 0
    rare: set[str] = field(default_factory=set)

    @property
    def place(self) -> tuple[int, bool, bool, list[int], int]:
        """Long ones first; those with rare brokers between the long and the short."""
        short = self.rank == 0 or not self.long
        return self.rank, short, bool(self.rare) != short, sorted(map(RARE.index, self.rare)), self.number


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse processes and connections to tests of the quick tier."""
    if request.node.get_closest_marker("quick") is None:
        return

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test of the quick tier starts no process and opens no connection: mark it `process`")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(BaseProcess, "start", refuse)
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system"):
        monkeypatch.setattr(os, name, refuse)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A random source of the test's own, fixed by the session's seed and the test's name, not by the tests before."""
    return random.Random(f"{request.config.stash[SEED]}/{request.node.nodeid}")


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses and that tells whose it is."""
    return f"{re.sub(r'[^a-zA-Z0-9._-]+', '-', request.node.name)[:80]}-{secrets.token_hex(4)}"


SEED = pytest.StashKey[int]()
