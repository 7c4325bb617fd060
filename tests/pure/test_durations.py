"""A test file that takes more than twice its time, and some seconds, is named, whatever the speed of the machine."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests import durations

KEPT = {"kafka/test_a.py": 40.0, "kafka/test_b.py": 60.0, "spark/test_c.py": 100.0, "kafka/test_d.py": 6.0}


def times(**changes: float) -> dict[str, float]:
    return {name: changes.get(name.rpartition("_")[2][0], seconds) for name, seconds in KEPT.items()}


@pytest.mark.parametrize(
    ("measured", "named"),
    [
        (times(), []),
        (times(c=239.0), []),
        (times(c=241.0), ["spark/test_c.py"]),
        (times(a=89.0), []),
        (times(a=91.0), ["kafka/test_a.py"]),
        (times(d=21.0), []),
        (times(d=23.0), ["kafka/test_d.py"]),
        ({name: 4 * seconds for name, seconds in KEPT.items()}, []),
        ({**{name: 2 * seconds for name, seconds in KEPT.items()}, "kafka/test_a.py": 179.0}, []),
        ({**{name: 2 * seconds for name, seconds in KEPT.items()}, "kafka/test_a.py": 181.0}, ["kafka/test_a.py"]),
        ({name: seconds / 4 for name, seconds in KEPT.items()}, []),
        ({**times(), "kafka/test_new.py": 300.0}, []),
        ({}, []),
    ],
    ids=[
        "as listed",
        "one of Spark, with its first jobs",
        "one of Spark, and more",
        "more than twice, by a few seconds",
        "more than twice, by more",
        "a short one more than twice, by a few seconds",
        "a short one more than twice, by more",
        "a slow machine",
        "a slow machine, and one file more than twice by a few seconds",
        "a slow machine, and one file more than twice by more",
        "a fast machine",
        "one that is not listed",
        "nothing was measured",
    ],
)
def test_what_takes_more_than_twice_its_time_is_named(measured: Mapping[str, float], named: list[str]) -> None:
    assert durations.grown(measured, KEPT, durations.scale_of(measured, KEPT)) == named


def test_the_listed_files_are_within_the_budget_of_make_test() -> None:
    assert not durations.is_over_budget(durations.read(durations.KEPT))


@pytest.mark.parametrize(("more", "over"), [(0.0, False), (0.1, True)])
def test_a_list_has_a_budget(more: float, over: bool) -> None:
    """No file doubles here, but their sum is too long."""
    half = durations.BUDGET_SECONDS / 2
    assert durations.is_over_budget({"kafka/test_a.py": half, "kafka/test_b.py": half + more}) is over


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The list and the last session's times, in another folder, with the test files that both name."""
    for name in KEPT:
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    kept, measured = tmp_path / "kept.json", tmp_path / "measured.json"
    kept.write_text(json.dumps(KEPT))
    for name, value in (("TESTS", tmp_path / "tests"), ("KEPT", kept), ("MEASURED", measured)):
        monkeypatch.setattr(durations, name, value)
    return kept, measured


@pytest.mark.parametrize(("alone", "code"), [(200.0, 1), (190.0, 1), (70.0, 0)])
def test_a_slow_file_is_named_when_it_is_slow_alone_too(
    files: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    alone: float,
    code: int,
) -> None:
    _, measured = files
    measured.write_text(json.dumps(times(b=200.0)))
    monkeypatch.setattr(durations, "run_alone", lambda slow: dict.fromkeys(slow, alone))
    assert durations.main() == code
    assert json.loads(measured.read_text()) == times(b=alone)
    assert (f"tests/kafka/test_b.py took {alone:.0f} s" in capsys.readouterr().err) is bool(code)


def test_a_file_of_some_seconds_that_is_not_listed_is_named_and_fails_nothing(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[1].write_text(json.dumps({**times(), "kafka/test_new.py": 10.0, "kafka/test_short.py": 1.0}))
    assert durations.main() == 0
    said = capsys.readouterr().out
    assert ("test_new.py" in said, "test_short.py" in said) == (True, False)


@pytest.mark.parametrize("machine", [1.0, 2.0])
@pytest.mark.parametrize(("more", "code"), [(-1.0, 0), (1.0, 1)])
def test_files_that_are_not_listed_count_in_the_budget(
    files: tuple[Path, Path], machine: float, more: float, code: int
) -> None:
    left = durations.BUDGET_SECONDS - sum(KEPT.values())
    seconds = {**times(), "kafka/test_new.py": left - 20.0, "pure/test_new.py": 20.0 + more, "pure/test_short.py": 9.0}
    files[1].write_text(json.dumps({name: machine * one for name, one in seconds.items()}))
    assert durations.main() == code


def test_as_long_as_listed_nothing_runs_again(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    files[1].write_text(json.dumps(times()))
    monkeypatch.setattr(durations, "run_alone", lambda slow: pytest.fail(f"{slow} ran again"))
    assert durations.main() == 0


@pytest.mark.parametrize("arguments", [(), ("--write",)])
def test_a_list_over_the_budget_fails_though_no_file_takes_longer(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    files[1].write_text(json.dumps(times()))
    assert durations.main(*arguments) == 0
    monkeypatch.setattr(durations, "BUDGET_SECONDS", sum(KEPT.values()) - 1)
    capsys.readouterr()
    assert durations.main(*arguments) == 1
    assert "205 s" in capsys.readouterr().err
    assert json.loads(files[0].read_text()) == KEPT


def test_what_is_listed_is_long_and_there(files: tuple[Path, Path]) -> None:
    kept, measured = files
    (files[0].parent / "tests" / "kafka" / "test_b.py").unlink()
    measured.write_text(json.dumps({"kafka/test_a.py": 1.9, "spark/test_c.py": 90.0}))
    assert durations.main("--write") == 0
    assert json.loads(kept.read_text()) == {"kafka/test_d.py": 6.0, "spark/test_c.py": 90.0}


def test_a_session_of_most_files_lists_no_others(files: tuple[Path, Path]) -> None:
    kept, measured = files
    most = {name: seconds for name, seconds in times().items() if name != "kafka/test_b.py"}
    measured.write_text(json.dumps(most))
    assert durations.main("--write") == 0
    assert json.loads(kept.read_text()) == most


def test_what_many_files_share_is_no_files_own_time(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def broker():
            pass

        @pytest.fixture(scope="package")
        def airflow(request):
            request.getfixturevalue("broker")
        """
    )
    pytester.makepyfile(
        """
        def test_first(airflow): pass
        def test_second(airflow, broker): pass
        """
    )
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[durations.Shared()])
    reports: Sequence[pytest.TestReport] = run.getreports("pytest_runtest_logreport")
    shared = {
        (report.location[2], report.when): float(str(dict(report.user_properties)[durations.SHARED]))
        for report in reports
    }
    assert len(shared) == 6
    assert {place for place, seconds in shared.items() if seconds} == {("test_first", "setup")}
    assert shared["test_first", "setup"] <= next(report.duration for report in reports if report.when == "setup")


def test_a_pure_test_that_passes_is_one_report_with_all_its_seconds(pytester: pytest.Pytester) -> None:
    text = """
        import pytest

        @pytest.fixture(scope="session")
        def shared():
            pass

        @pytest.fixture
        def late():
            yield
            assert 0

        def test_passes(shared): pass
        def test_fails(): assert 0
        def test_fails_late(late): pass
        @pytest.mark.skip
        def test_skipped(): pass
        @pytest.mark.xfail
        def test_is_expected_to_fail(): assert 0
        """
    for folder in ("pure", "world"):
        (pytester.mkpydir(folder) / "test_a.py").write_text(textwrap.dedent(text))
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[durations.Shared(), durations.OneReport()])
    reports: Sequence[pytest.TestReport] = run.getreports("pytest_runtest_logreport")
    whole = ["setup", "call", "teardown"]
    assert {
        folder: {
            name: [one.when for one in reports if one.nodeid == f"{folder}/test_a.py::test_{name}"]
            for name in ("passes", "fails", "fails_late", "skipped", "is_expected_to_fail")
        }
        for folder in ("pure", "world")
    } == {
        "pure": {
            "passes": ["call"],
            "fails": whole,
            "fails_late": whole,
            "skipped": ["setup", "teardown"],
            "is_expected_to_fail": whole,
        },
        "world": {
            "passes": whole,
            "fails": whole,
            "fails_late": whole,
            "skipped": ["setup", "teardown"],
            "is_expected_to_fail": whole,
        },
    }
    one = next(one for one in reports if one.nodeid == "pure/test_a.py::test_passes")
    shared = sum(float(str(value)) for name, value in one.user_properties if name == durations.SHARED)
    assert one.duration >= shared > 0


def test_a_file_is_listed_without_what_it_shares(files: tuple[Path, Path]) -> None:
    _, measured = files
    counted = durations.Durations()
    for duration, shared in ((40.0, 30.0), (2.0, 0.0)):
        counted.pytest_runtest_logreport(report(duration, shared))
    counted.pytest_sessionfinish()
    assert json.loads(measured.read_text()) == {"kafka/test_a.py": 12.0}


def report(duration: float, shared: float) -> pytest.TestReport:
    """What pytest says of a test of kafka/test_a.py."""
    return pytest.TestReport(
        nodeid="tests/kafka/test_a.py::test_a",
        location=("tests/kafka/test_a.py", 0, "test_a"),
        keywords={},
        outcome="passed",
        longrepr=None,
        when="call",
        duration=duration,
        user_properties=[(durations.SHARED, shared)],
    )
