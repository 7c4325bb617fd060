"""A failover waits once for the cluster that is lost, not in each step."""

from __future__ import annotations

import time

import pytest

from ferry.features.switch.acts.sides import RETRIED_S, SILENT_S, Silence
from ferry.lane.connections import SOURCE_PATIENCE_S
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World

FAIL = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-smoke"
TRIES_OF_A_STEP = 2
"""The old cluster's partitions, and its groups."""


@pytest.mark.slow
def test_each_step_after_the_checks_tries_the_lost_cluster_for_a_moment(made: World) -> None:
    begun(made, "b->a.enabled = true", "b->a.topics = users", topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.lost = made.a
    before = time.monotonic()
    answer = made.ask(*FAIL)
    whole = time.monotonic() - before
    assert answer.code == 0, answer.out + answer.err
    steps = {step["step"]: (step["done_ms"] - step["begun_ms"]) / 1000 for step in answer.body["steps"]}
    longest = TRIES_OF_A_STEP * RETRIED_S + 1
    assert {name: took for name, took in steps.items() if took > longest} == {}
    assert SOURCE_PATIENCE_S < whole < 4 * SOURCE_PATIENCE_S


def test_a_cluster_that_was_silent_is_tried_longer_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    silence = Silence()
    tried = []
    # Nothing makes the silence longer but a whole try, not even a short one that ends after it.
    for passed_s, answers in (
        (0.0, False),
        (SILENT_S - 0.5, False),
        (0.0, False),
        (1.0, False),
        (0.0, True),
        (0.0, True),
    ):
        tried_s = silence.patience_s(SOURCE_PATIENCE_S)
        tried.append(tried_s)
        now[0] += passed_s
        silence.note(answers=answers, tried_s=tried_s)
    whole, short = SOURCE_PATIENCE_S, RETRIED_S
    assert tried == [whole, short, short, short, whole, whole]
