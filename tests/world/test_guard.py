"""The guard of pure tests while pytest imports their modules; in the tests themselves: tests/pure/net/test_guard.py."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer

from tests.conftest import pytest_make_collect_report
from tests.durations import TESTS
from tests.pure.net.test_guard import NOTHING, NOWHERE, REFUSED
from tests.purity import refuses


@contextmanager
def collected(path: Path, report: SimpleNamespace | None = None) -> Iterator[None]:
    """As pytest collects what is at the path below tests/, and reports that it went well."""
    hook = pytest_make_collect_report(cast("pytest.Collector", SimpleNamespace(path=TESTS / path)))
    next(hook)
    yield
    with suppress(StopIteration):
        hook.send(cast("pytest.CollectReport", report or SimpleNamespace(passed=True)))


@pytest.mark.parametrize("path", ["pure", "pure/net/test_new.py"])
@pytest.mark.parametrize("how", REFUSED)
def test_what_a_pure_module_does_when_it_is_imported_is_refused(how: str, path: str) -> None:
    with collected(Path(path)), refuses():
        REFUSED[how]()


def test_a_pure_module_that_catches_a_refusal_is_not_collected() -> None:
    report = SimpleNamespace(passed=True, outcome="passed", longrepr=None)
    with collected(Path("pure/net/test_new.py"), report), suppress(AssertionError):
        REFUSED["run"]()
    assert report.outcome == "failed"
    assert report.longrepr


def test_a_module_of_another_tier_may_start_and_connect_as_all_may_after_the_collection() -> None:
    with collected(Path("pure/net/test_new.py")):
        pass
    for path in ("world/net/test_new.py", ""):
        with collected(Path(path)):
            subprocess.run(NOTHING, check=True)
            Consumer(NOWHERE).close()
