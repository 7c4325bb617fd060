"""Kept situations (plans/README.md) lead to the plans that they led to, byte by byte."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

from ferry.model import ChangeKind, Plan, RefusalKind, Resolution
from tests.pure.decide.kept_plans import PLANS, decided, plans

FILES = sorted(PLANS.rglob("*.jsonl"))

FOUND_LATER = {
    RefusalKind.CLOCK_SKEW,
    RefusalKind.CORRUPT,
    RefusalKind.INVALID_CONFIG,
    RefusalKind.NEEDS_TRANSCODING,
    RefusalKind.POISON,
    RefusalKind.POLICY,
    RefusalKind.QUOTA,
    RefusalKind.SLOT_FAILED,
    RefusalKind.STUCK,
    RefusalKind.TOO_LARGE,
}
"""What changes of topics or the copy meet; no facts show it."""

OF_THE_RUN = {RefusalKind.CLUSTER_CHANGED}
"""It stops the whole run: there is no plan."""


@functools.cache
def texts() -> Mapping[Path, str]:
    return plans()


@functools.cache
def all_plans() -> tuple[Plan, ...]:
    return tuple(decided())


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PLANS).with_suffix("")))
def test_the_plan_is_what_it_was(path: Path) -> None:
    assert texts()[path] == path.read_text("utf-8")


def test_each_plan_is_kept() -> None:
    assert set(FILES) == texts().keys()


def test_there_is_a_plan_for_each_kind_of_decision() -> None:
    refused = {refusal.kind for plan in all_plans() for refusal in plan.refusals}
    assert refused == set(RefusalKind) - FOUND_LATER - OF_THE_RUN
    assert {change.kind for plan in all_plans() for change in plan.changes} == set(ChangeKind)
    assert {gap.how for plan in all_plans() for gap in plan.gaps} == set(Resolution)
    assert {gap.why for plan in all_plans() for gap in plan.gaps} >= OF_THE_RUN
    for field in ("kept", "dealt", "eras", "drift", "notes", "lifted", "paused", "caught_up"):
        assert any(getattr(plan, field) for plan in all_plans()), field
