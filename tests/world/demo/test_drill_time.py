"""The demo's drill is held against its aim."""

from __future__ import annotations

import time

import pytest

from ferry_airflow.demo import __main__ as demo


@pytest.mark.parametrize(
    ("took_s", "drilled", "code", "said"),
    [
        (179.0, 0, 0, "The drill took 179 s, the aim is 180 s at most. Reports"),
        (181.0, 0, 1, "The drill took 181 s, the aim is 180 s at most: TOO LONG. Reports"),
        (1.0, 2, 2, "The drill took 1 s, the aim is 180 s at most. Reports"),
    ],
)
def test_a_drill_that_takes_too_long_fails(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    took_s: float,
    drilled: int,
    code: int,
    said: str,
) -> None:
    times = iter((0.0, took_s))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    monkeypatch.setattr(demo, "ferry", lambda *_: drilled)
    assert demo.drill() == code
    assert said in capsys.readouterr().out
