"""What one run is narrowed to: by the command line, or by the trigger form of Airflow."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load
from ferry.plan.options import DEFAULT_RUN, RunOptions, rules_of
from ferry_airflow.steps import options_of

FILE = """
clusters = a, b
a.bootstrap.servers = kafka.a.invalid:9092
b.bootstrap.servers = kafka.b.invalid:9092
a->b.enabled = true
a->b.ferry.run.max.bytes = 1000
a->b.ferry.run.max.seconds = 60
"""


@pytest.fixture
def flow(tmp_path: Path) -> FlowConfig:
    """A flow with a budget of bytes and seconds, and none of records."""
    path = tmp_path / "flow.properties"
    path.write_text(FILE)
    return load(path).flows[0]


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        (DEFAULT_RUN, (1_000, None, 60)),
        (RunOptions(max_bytes=10, max_records=20, max_seconds=30), (10, 20, 30)),
        (RunOptions(max_bytes=2_000, max_seconds=90), (1_000, None, 60)),
    ],
)
def test_a_run_may_be_narrowed_and_not_widened(
    flow: FlowConfig, options: RunOptions, budget: tuple[int | None, int | None, int]
) -> None:
    rules = rules_of(flow, "live", options)
    assert (rules.max_bytes, rules.max_records, rules.max_seconds) == budget


def test_the_trigger_form_is_one_runs_options() -> None:
    form = {"topics": ["orders"], "max_bytes": 1, "max_records": 2, "max_seconds": 3, "take_over": True}
    found = options_of(form)
    assert found == RunOptions(only=frozenset({"orders"}), max_bytes=1, max_records=2, max_seconds=3, take_over=True)
    # Windows of the past are asked for by the backfill's own form.
    asked = {item.name for item in fields(RunOptions)} - {"window"}
    assert all(getattr(found, name) != getattr(DEFAULT_RUN, name) for name in asked), "all are asked"
    empty: dict[str, object] = {
        "topics": [],
        "max_bytes": None,
        "max_records": None,
        "max_seconds": None,
        "take_over": False,
    }
    assert options_of(empty) == options_of({}) == DEFAULT_RUN
