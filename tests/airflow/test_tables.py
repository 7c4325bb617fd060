"""Plans in task logs: a plan that is only shown says what it would do, a sealed one what was done."""

from __future__ import annotations

from dataclasses import replace

from ferry.model import ChangeKind, TopicChange, Unsupported
from ferry_airflow.tables import plan_lines, shortened, verified_sentence
from tests.golden import Golden
from tests.pure.decide.values import PLAN

GROW = TopicChange(kind=ChangeKind.GROW, topic="a.orders", source_topic="orders", partitions=3, replication_factor=0)
DRIFT = replace(GROW, kind=ChangeKind.CONFIGURE, configs=(("segment.ms", "5"),), was=(("segment.ms", "6"),))


def test_a_plan_that_is_only_shown_says_what_a_run_would_do_and_what_is_not_copied(golden: Golden) -> None:
    left = Unsupported(what="scram-users", count=2, message="2 SCRAM users are not copied")
    shown = replace(PLAN, generation=-1, changes=(GROW,), drift=(DRIFT,), not_copied=(left,))
    lines = plan_lines(shown)
    golden("\n".join(lines))


def test_a_sealed_plan_says_what_was_done(golden: Golden) -> None:
    golden("\n".join(plan_lines(replace(PLAN, changes=(GROW,)))))


def test_a_comparison_of_nothing_is_not_called_equal() -> None:
    body = {"flow": "a->b", "differences": [], "more_differences": 0, "partitions": 1, "bytes": 0, "seconds": 0.1}
    assert "a->b: nothing to compare;" in verified_sentence({**body, "equal": True, "records": 0})
    assert "a->b: equal;" in verified_sentence({**body, "equal": True, "records": 3})
    assert "a->b: not all " in verified_sentence({**body, "equal": False, "records": 0})


def test_what_a_verification_returns_counts_the_differences_that_it_leaves_out() -> None:
    one = {"kind": "value", "topic": "orders", "partition": 0, "source_range": [1, 2]}
    body = {"flow": "a->b", "equal": False, "differences": [one] * 25, "more_differences": 3, "partitions": 1}
    short = shortened(body | {"records": 9, "bytes": 0, "seconds": 0.1}, 20)
    assert (len(short["differences"]), short["more_differences"]) == (20, 8)
    assert "28 differences" in verified_sentence(short)
