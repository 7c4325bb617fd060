"""How long fixtures may take: one that hangs fails its test, and the session continues.

pytest-timeout bounds the tests themselves (`func_only` in tests/conftest.py): the first test that takes a cluster would
otherwise pay for its start.
"""

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from tests.durations import file_of
from tests.tiers import PATIENCE, PURE, SECONDS

FIXTURE_SECONDS = {tier: 30 if tier == PURE else 900 for tier in SECONDS}
"""How long all fixtures of one test may take to start, and as long to end, by the test's folder.

The first test of a session with Airflow starts brokers, Airflow and Spark: three minutes on a busy machine.
"""


class Limits:
    """A plugin that bounds the set-up and the clean-up of each test."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Bound the start of a test's fixtures."""
        with within(_seconds(item), f"the fixtures of {item.name} started"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Bound their end; after the last test those of the session end, too."""
        with within(_seconds(item), f"the fixtures of {item.name} ended"):
            return (yield)


def _seconds(item: pytest.Item) -> float:
    tier = file_of(item.nodeid).partition("/")[0]
    return PATIENCE * FIXTURE_SECONDS.get(tier, max(FIXTURE_SECONDS.values()))


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Fail in the main thread, where it is then, when so many seconds are over. A timer that runs already stays."""

    def late(*_: object) -> None:
        pytest.fail(f"{what} not within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    left = signal.setitimer(signal.ITIMER_REAL, seconds)[0]
    try:
        yield
    finally:
        # None: code that is not Python's has set a handler, which Python cannot set again.
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)
        signal.setitimer(signal.ITIMER_REAL, left)
