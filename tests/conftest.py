"""What all tests share: seeds, order, processes, Hypothesis profiles; the brokers are in tests/clusters.py."""

import functools
import gc
import os
import random
import re
import secrets
from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import dataclass, field

import croniter  # type: ignore[import-untyped]  # noqa: F401 - its import starts a process, which pure tests refuse
import hypothesis.core
import matplotlib.font_manager  # noqa: F401 - its first import of all starts a process, too
import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.durations import KEPT, TESTS, Durations, OneReport, Shared, file_of, read
from tests.limits import Limits
from tests.purity import CAUGHT, Refusals, caught_refusal, nothing_but_python
from tests.tiers import OF_MAKE_TEST, PATIENCE, PURE, SECONDS, is_extra

pytest_plugins = ["tests.clusters", "tests.golden", "pytester"]

SEED_VARIABLE = "FERRY_SEED"
# What few files ask for, and what is dear to start: one process has all files with a test that takes it.
RARE = ("third_cluster", "three_brokers", "old_cluster", "book")
# Each folder stays in one process: what its session starts (an Airflow, two KDCs) is dear.
WHOLE_FOLDERS = ("airflow", "security")

settings.register_profile("default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", parent=settings.get_profile("default"), max_examples=10, derandomize=True)
settings.register_profile("ci", parent=settings.get_profile("default"), max_examples=200)
settings.register_profile("soak", parent=settings.get_profile("default"), max_examples=20_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    """Choose the session's seed once, FERRY_SEED, else a fresh one that the header shows; time its files.

    Hypothesis draws by the same seed, but where a profile (`quick`) or a test fixes its draws.
    """
    given = getattr(config, "workerinput", {}).get(SEED_VARIABLE) or os.environ.get(SEED_VARIABLE)
    config.stash[SEED] = int(given or secrets.randbits(32))
    hypothesis.core.global_force_seed = config.stash[SEED]  # type: ignore[assignment]  # None before
    config.pluginmanager.register(Shared())
    config.pluginmanager.register(Limits())
    config.pluginmanager.register(Refusals())
    config.pluginmanager.register(OneReport() if hasattr(config, "workerinput") else Durations())


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Give every process of `pytest -n` the seed that the header shows."""
    node.workerinput[SEED_VARIABLE] = node.config.stash[SEED]


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Deals whole files, or whole folders, to the processes of `pytest -n`, in their order."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """What stays in one process with a test: its file, its folder, or all files with the same of RARE."""
    file = file_of(nodeid)
    folder = file.rpartition("/")[0].rpartition("/")[2]
    return folder if folder in WHOLE_FOLDERS else rare_in(file) or file


@functools.cache
def rare_in(file: str) -> str:
    """The first of RARE that a test file below tests/ takes; empty where it takes none, or is a pure one."""
    text = "" if file.startswith(f"{PURE}/") else (TESTS / file).read_text()
    return next((name for name in RARE if f"{name}: " in text), "")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Use ByFile. The plugin's own order, most tests first, would start with brokers."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed, so that a failing random test can be had again."""
    return f"ferry: {SEED_VARIABLE}={config.stash[SEED]}, Hypothesis profile {settings.get_current_profile_name()}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests the limit of their tier, mark those that `make test` leaves out, and put files in order."""
    kept = read(KEPT)
    of_make_test = config.stash[OF_MAKE_TEST] = {}
    scopes: dict[str, Scope] = {}
    takers: set[str] = set()
    for item in items:
        file = file_of(item.nodeid)
        if is_extra(file, item.name):
            item.add_marker("extra")
        if tier_of(item) == "soak":
            item.add_marker("soak")
        names = of_make_test.setdefault(file, set())
        if not any(item.get_closest_marker(mark) for mark in ("extra", "soak")):
            names.add(item.name)
        limit = item.get_closest_marker("timeout")
        seconds = SECONDS[tier_of(item)] if limit is None else limit.args[0]
        item.add_marker(pytest.mark.timeout(seconds * PATIENCE, func_only=True), append=False)
        scope = scopes.setdefault(scope_of(item.nodeid), Scope(number=len(scopes), pure=tier_of(item) == PURE))
        scope.files.add(file)
        if item.get_closest_marker("extra") is None and rare_in(file) in getattr(item, "fixturenames", ()):
            takers.add(file)
    for scope in scopes.values():
        scope.seconds = sum(kept.get(file, 0) for file in scope.files)
    # What is rare ends with the last file that takes it (tests/clusters.py): these lie together.
    items.sort(key=lambda item: (*scopes[scope_of(item.nodeid)].place, file_of(item.nodeid) not in takers))


def tier_of(item: pytest.Item) -> str:
    """The folder below tests/ that says what a test needs."""
    return file_of(item.nodeid).partition("/")[0]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector pass over thousands of tests and all modules: they stay to the end.

    Afterwards it looks seldom: by default it looks whenever 700 objects are new, which took a twelfth of all CPU time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000)
        gc.enable()


@dataclass(kw_only=True)
class Scope:
    """What decides when the tests of a file, or of a whole folder, run."""

    number: int
    pure: bool
    files: set[str] = field(default_factory=set)
    seconds: float = 0

    @property
    def place(self) -> tuple[bool, float, int]:
        """Pure ones first: a mistake shows before the first broker starts. Then the longest first, so that the
        processes of `pytest -n` end together."""
        return not self.pure, -self.seconds, self.number


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Refuse processes and connections to pure tests, and to what fixtures of any scope do for them."""
    with nothing_but_python() if tier_of(item) == PURE else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse the same to the modules of pure tests while they are imported; one that catches a refusal fails."""
    is_pure = (TESTS / PURE) in (collector.path, *collector.path.parents)
    with nothing_but_python() if is_pure else nullcontext():
        report = yield
    if caught_refusal() is not None and report.passed:
        report.outcome, report.longrepr = "failed", CAUGHT
    return report


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A random source of the test's own, fixed by the session's seed and the test's name, not by the tests before."""
    return random.Random(f"{request.config.stash[SEED]}/{request.node.nodeid}")


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses and that tells whose it is."""
    return f"{re.sub(r'[^a-zA-Z0-9._-]+', '-', request.node.name)[:80]}-{secrets.token_hex(4)}"


SEED = pytest.StashKey[int]()
