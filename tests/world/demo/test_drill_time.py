"""The demo's drill is held against its aim."""

from __future__ import annotations

import time

import pytest

from ferry_airflow.demo import __main__ as demo
from tests.golden import Golden


@pytest.mark.parametrize(
    ("took_s", "drilled", "code"),
    [(179.0, 0, 0), (181.0, 0, 1), (1.0, 2, 2)],
    ids=["in time", "too long", "failed"],
)
def test_a_drill_that_takes_too_long_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    took_s: float,
    drilled: int,
    code: int,
    golden: Golden,
) -> None:
    times = iter((0.0, took_s))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(demo, "ferry", lambda *_: drilled)
    assert demo.drill() == code
    golden(capsys.readouterr().out.partition(" Reports")[0].splitlines()[-1])
