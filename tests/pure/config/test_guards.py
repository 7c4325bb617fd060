"""What a guard's line means: one policy for all topics, others for some; what cannot be meant is named."""

import pytest

from ferry.config.flow.guards import GUARD_KEYS, OnGuard
from ferry.config.keys.own import FERRY_KEYS_BY_NAME
from ferry.config.reading.examine import examine
from ferry.config.settings import parse_settings
from ferry.model import RefusalKind
from tests.golden import Golden

BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"


def policies(line: str, *topics: str) -> list[str]:
    guards = parse_settings(BASE + line, "x.properties").flow("a->b").topics.guards
    return [guards.of(RefusalKind.RETENTION_PASSED, topic).value for topic in topics]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("fail", ["fail", "fail", "fail"]),
        ("skip", ["skip", "skip", "skip"]),
        ("skip:logs.*", ["fail", "skip", "skip"]),
        ("skip, fail:logs", ["skip", "fail", "skip"]),
        ("fail:logs\\\\.audit, skip:logs.*", ["fail", "skip", "fail"]),  # the first that matches counts
        (" skip:logs , fail ,skip : orders", ["skip", "skip", "fail"]),
    ],
)
def test_the_first_pattern_that_matches_counts_and_else_what_is_for_all(value: str, found: list[str]) -> None:
    assert policies(f"ferry.guard.retention.passed = {value}\n", "orders", "logs", "logs.audit") == found


def test_a_flow_may_have_its_own() -> None:
    lines = "ferry.guard.retention.passed = skip\na->b.ferry.guard.retention.passed = fail, skip:logs\n"
    assert policies(lines, "orders", "logs") == ["fail", "skip"]


@pytest.mark.parametrize(
    "line",
    [
        "ferry.guard.topic.recreated = skip",
        "ferry.guard.retention.passed = fail, restart:logs",
        "ferry.guard.retention.passed = logs:skip",
        "ferry.guard.retention.passed = skip, fail",
        "ferry.guard.retention.passed = skip:",
        "ferry.guard.retention.passed = skip:lo[gs",
        "ferry.guard.retention.passed =",
        "ferry.guard.cluster.changed = restart:logs",
        "ferry.guard.retention.pased = skip",
    ],
)
def test_a_line_that_means_nothing_is_an_error_with_its_place(line: str, golden: Golden) -> None:
    (problem,) = examine(f"{BASE}{line}\n", "x.properties").problems
    assert (problem.file, problem.line, problem.key) == ("x.properties", 5, line.partition(" ")[0])
    golden(problem.message)


def test_each_guard_is_a_key_and_the_word_of_a_refusal() -> None:
    kinds = {kind.value for kind in RefusalKind}
    for guard in GUARD_KEYS:
        assert guard.kind in kinds
        assert guard.policies[0] is OnGuard.FAIL
        described = FERRY_KEYS_BY_NAME[guard.key]
        assert described.default == "fail"
        assert [f"`{policy}`" in described.values for policy in OnGuard] == [
            policy in guard.policies for policy in OnGuard
        ]
    assert {key for key in FERRY_KEYS_BY_NAME if ".guard." in key} == {guard.key for guard in GUARD_KEYS}
