"""`ferry.groups.schedule`: off unless a line sets it, and named where it has no effect."""

from __future__ import annotations

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.reading.examine import Examined, examine
from ferry.config.text.problem import Severity
from ferry.features.groups.settings import GroupsDag, GroupsSettings

FILE = """clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
topics = orders
"""
KEY = "ferry.groups.schedule"


def read(*lines: str) -> Examined:
    return examine(FILE + "".join(f"{line}\n" for line in lines), "f")


def flow_of(*lines: str) -> FlowConfig:
    found = read(*lines)
    assert [str(problem) for problem in found.problems] == []
    return found.flows[0]


@pytest.mark.parametrize(
    ("lines", "dag"),
    [
        ((), None),
        ((f"{KEY} =",), None),
        ((f"{KEY} = none",), GroupsDag(schedule=None)),
        ((f"{KEY} = *  * * * *",), GroupsDag(schedule="* * * * *")),
        ((f"{KEY} = @hourly", f"a->b.{KEY} = @continuous"), GroupsDag(schedule="@continuous")),
        (("sync.group.offsets.interval.seconds = 30",), None),
    ],
    ids=["nothing", "empty", "by hand", "cron", "of the flow", "the interval of MirrorMaker 2"],
)
def test_only_its_own_line_makes_a_dag(lines: tuple[str, ...], dag: GroupsDag | None) -> None:
    assert flow_of(*lines).of(GroupsSettings).dag == dag


def test_a_schedule_that_there_is_not_is_an_error_of_its_line() -> None:
    (problem,) = read(f"{KEY} = often").problems
    assert (problem.line, problem.key, problem.severity) == (6, KEY, Severity.ERROR)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("sync.group.offsets.enabled = false", "sync.group.offsets.enabled"),
        ("sync.group.offsets.interval.seconds = -1", "sync.group.offsets.interval.seconds"),
    ],
)
def test_a_schedule_without_effect_is_warned_of(line: str, named: str) -> None:
    (problem,) = read(f"{KEY} = @hourly", line).problems
    assert (problem.line, problem.severity) == (6, Severity.WARNING)
    assert named in problem.message
    assert read(line).problems == ()


def test_a_schedule_changes_no_copy() -> None:
    assert flow_of(f"{KEY} = @hourly").digest() == flow_of().digest()
