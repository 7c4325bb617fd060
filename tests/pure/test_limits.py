"""A fixture that hangs fails its test within a limit, whatever its scope, and later tests run."""

from __future__ import annotations

import signal

import pytest

from tests import limits
from tests.tiers import SECONDS

HANGS = "import signal; signal.pause()"


def ran(pytester: pytest.Pytester, fixture: str) -> dict[str, list[str]]:
    """The outcomes by phase of a test that takes the fixture, and of one that does not."""
    pytester.makepyfile(
        f"""
        import pytest

        {fixture}

        def test_takes_it(it): pass

        def test_other(): pass
        """
    )
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[limits.Limits()])
    found: dict[str, list[str]] = {"setup": [], "call": [], "teardown": []}
    for report in run.getreports("pytest_runtest_logreport"):
        found[report.when].append(report.outcome)
    return found


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIXTURE_SECONDS", {"any": 0.2})


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["function", "module", "session"])
def test_a_fixture_that_never_starts_fails_its_test(pytester: pytest.Pytester, scope: str) -> None:
    found = ran(pytester, f"@pytest.fixture(scope='{scope}')\n        def it(): {HANGS}")
    assert (found["setup"], found["call"]) == (["failed", "passed"], ["passed"])


@pytest.mark.slow
def test_a_fixture_that_never_ends_fails_its_test(pytester: pytest.Pytester) -> None:
    found = ran(pytester, f"@pytest.fixture\n        def it():\n            yield\n            {HANGS}")
    assert (found["call"], found["teardown"]) == (["passed"] * 2, ["failed", "passed"])


def test_a_fixture_that_starts_and_ends_disturbs_nothing(pytester: pytest.Pytester) -> None:
    before = signal.getsignal(signal.SIGALRM)
    found = ran(pytester, "@pytest.fixture\n        def it(): yield")
    assert set().union(*found.values()) == {"passed"}
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] > 0, "this test has its own limit yet"


def test_a_session_of_this_suite_has_the_limits(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert any(isinstance(one, limits.Limits) for one in request.config.pluginmanager.get_plugins())
    assert limits.FIXTURE_SECONDS.keys() == SECONDS.keys()
