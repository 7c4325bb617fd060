"""What the page says of a task that Airflow tries again, and of a flow with such a task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.ledger.history import PastState
from ferry_airflow.page.airflow_side import DagState
from ferry_airflow.page.flow_health import TRIES_HIDDEN, Expected
from ferry_airflow.page.retry_words import Retry, before_of, now_of
from ferry_airflow.page.run_words import Condition
from tests.airflow.page.test_flow_health import KNOWN, LIMIT, NOW_MS, SILENT, WELL, lone, row, standing
from tests.golden import Golden

RETRY = Retry(task="copy", state="up_for_retry", number=2, most=5, ended=1, last=1, ended_ms=1_790_000_000_000)


def retried(retry: Retry = RETRY, **of_dag: object) -> DagState:
    """The DAG of a run r2 that is active, with such a task."""
    return replace(KNOWN, runs=(replace(row("r2", "running", 240), retries=(retry,)),), **of_dag)  # type: ignore[arg-type]


NEXT = {"due_ms": NOW_MS + 1_000}


@pytest.mark.parametrize(
    ("change", "paused"),
    [
        pytest.param({"due_ms": NOW_MS}, False, id="due"),
        pytest.param(NEXT, False, id="next"),
        pytest.param(NEXT, True, id="paused"),
        pytest.param({}, False, id="not known"),
        pytest.param({"state": "queued"}, False, id="queued"),
        pytest.param({"state": "queued"}, True, id="queued and paused"),
        pytest.param({"state": "running", "began_ms": NOW_MS}, False, id="running"),
        pytest.param({"state": "deferred", "began_ms": NOW_MS}, True, id="deferred"),
        pytest.param({"state": "running", "most": None}, False, id="since when is not known"),
    ],
)
def test_a_try_is_under_way_or_begins_at_a_known_time_or_not(
    change: dict[str, object], paused: bool, golden: Golden
) -> None:
    golden(now_of(replace(RETRY, **change), paused=paused, now_ms=NOW_MS))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{}, {"number": 4, "ended": 3, "last": 3}, {"ended_ms": None}], ids=["one", "three", "time not known"]
)
def test_the_tries_before_are_counted_and_the_last_has_its_time(change: dict[str, object], golden: Golden) -> None:
    golden(before_of(replace(RETRY, **change)))  # type: ignore[arg-type]


def test_a_row_of_a_list_has_the_try_and_how_the_last_one_ended(golden: Golden) -> None:
    golden(RETRY.short)


def test_a_flow_whose_run_is_tried_again_is_not_healthy(golden: Golden) -> None:
    found = standing(WELL, retried(), Expected(limit=LIMIT), NOW_MS)
    assert (found.condition, found.word, found.run) == (Condition.WARN, "retrying", "r2")
    assert [one.word for one in found.also] == ["running"]
    assert found.logs == RETRY.log
    golden(found.why)


def test_a_worse_word_hides_no_retry() -> None:
    dag = retried()
    for seen, word in (
        (replace(WELL, troubles=SILENT), "unreachable"),
        (replace(WELL, runs=lone(PastState.FAILED, 9).runs), "failed"),
    ):
        found = standing(seen, dag, Expected(limit=LIMIT), NOW_MS)
        assert found.word == word
        assert "retrying" in [one.word for one in found.also]


def test_a_run_that_has_ended_is_tried_no_more() -> None:
    ended = replace(KNOWN, runs=(replace(row("r1", "success", 240, 9), retries=(RETRY,)),))
    assert standing(WELL, ended, Expected(limit=LIMIT), NOW_MS).word == "healthy"


@pytest.mark.parametrize("hidden", [{"hides_tasks": True}, {"hides_runs": True, "runs": ()}])
def test_that_a_retry_cannot_be_seen_is_said(hidden: dict[str, object]) -> None:
    known = replace(KNOWN, runs=(row("r1", "running", 240),))
    dag = replace(known, **hidden)  # type: ignore[arg-type]
    seen = lone(PastState.OPEN, 9)
    found = standing(seen, dag, Expected(limit=LIMIT), NOW_MS)
    assert found.word == "running"
    assert TRIES_HIDDEN in found.why
    assert TRIES_HIDDEN not in standing(seen, known, Expected(limit=LIMIT), NOW_MS).why
