"""What a lane passed over on purpose: a switch, a drill and readiness count it, and call it no loss of nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.pure.answers.stories import IDENTITY, begun
from tests.pure.answers.world import World

pytestmark = pytest.mark.slow
OVER = (*("switchover", "a->b", "--id", "s-1", "--quiet-seconds", "0"), *("--approve-by", "bob", "--report", "reports"))
TURN = "b->a.enabled = true"


def report_of(made: World, *words: str) -> Mapping[str, Any]:
    """The report that a command writes."""
    answer = made.ask(*words)
    assert answer.code in (0, 1, 3), answer.out + answer.err
    (path,) = (made.folder / "reports").glob("report-*.json")
    report: Mapping[str, Any] = json.loads(path.read_text())
    return report


def skipped(made: World, *lines: str, billing: int = 4) -> None:
    """Of 15 records, 10 are copied, 3 are skipped, 2 are left."""
    begun(made, TURN, *lines, topics={"users": 1})
    made.commit(made.a, "billing", users_0=billing)
    made.ask("run", "a->b", "--id", "r1")
    made.produce(made.a, "users", 0, 5)
    assert made.ask("skip", "a->b", "users", "0", "--to", "13", "--reason", "corrupt").code == 0


def ranges(report: Mapping[str, Any]) -> list[tuple[int | None, int, str]]:
    return [(one["start"], one["end"], one["why"]) for one in report["rpo"]["passed_over"]]


def check(made: World) -> Mapping[str, Any]:
    checks = made.ask("readiness", "a->b").body["checks"]
    (found,) = (one for one in checks if one["name"] == "passed-over")
    return dict(found)


def test_a_skip_is_in_the_report_of_a_switchover(made: World) -> None:
    skipped(made)
    report = report_of(made, *OVER)
    assert ranges(report) == [(10, 13, "stuck")]
    (one,) = report["rpo"]["passed_over"]
    assert (one["topic"], one["partition"], one["reason"]) == ("users", 0, "corrupt")
    assert one["who"]
    assert "0 records were lost" not in report["summary"]
    assert "3 offsets" in report["summary"]
    assert any("users-0" in note and "corrupt" in note for note in report["notes"])


@pytest.mark.parametrize(("at", "exact", "unread"), [(4, 2, 3), (11, 1, 2), (13, 2, 0)])
def test_a_group_skips_what_it_had_not_read_of_a_gap(made: World, at: int, exact: int, unread: int) -> None:
    skipped(made, billing=at)
    report = report_of(made, *OVER)
    (group,) = report["groups"]
    assert (group["exact"], group["reread"], group["skipped"]) == (exact, 0, unread)
    assert any("billing" in one for one in report["deviations"]) is (unread > 0)


def test_a_lifted_guard_is_in_the_report(made: World) -> None:
    begun(made, TURN, "ferry.guard.retention.passed = skip", topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    made.ask("run", "a->b", "--id", "r1")
    made.lose(made.a, "users", 0, 14)
    made.ask("run", "a->b", "--id", "r2")
    report = report_of(made, *OVER)
    assert ranges(report) == [(10, 14, "retention-passed")]
    (one,) = report["rpo"]["passed_over"]
    assert one["who"] == "ferry.guard.retention.passed"
    assert "4 offsets" in report["summary"]
    (group,) = report["groups"]
    assert (group["exact"], group["reread"], group["skipped"]) == (2, 0, 4)


def test_readiness_names_a_skip(made: World) -> None:
    skipped(made)
    found = check(made)
    assert found["ok"]
    assert "3 offsets" in found["message"]
    assert "users-0" in found["message"]


def test_readiness_says_that_nothing_was_passed_over(made: World) -> None:
    begun(made, TURN, topics={"users": 1})
    made.ask("run", "a->b", "--id", "r1")
    assert check(made)["message"].startswith("no offset")


def test_what_lies_before_the_start_is_in_the_report(made: World) -> None:
    begun(made, TURN, "ferry.start = latest", topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    made.ask("run", "a->b", "--id", "r1")
    made.produce(made.a, "users", 0, 5)
    made.ask("run", "a->b", "--id", "r2")
    assert "10 offsets" in check(made)["message"]
    report = report_of(made, *OVER)
    assert ranges(report) == [(0, 10, "start")]
    assert "10 offsets" in report["summary"]
    (group,) = report["groups"]
    assert (group["exact"], group["reread"], group["skipped"]) == (1, 0, 6)


def test_what_a_window_copied_since_of_what_is_before_the_start_does_not_count(made: World) -> None:
    begun(made, TURN, "ferry.start = latest", topics={"users": 1})
    made.ask("run", "a->b", "--id", "r1")
    assert "10 offsets" in check(made)["message"]
    window = "--from-offset", "users:0:4", "--to-offset", "users:0:10"
    assert made.ask("backfill", "a->b", "--into-live", *window).code == 0
    assert "4 offsets" in check(made)["message"]
    made.produce(made.a, "users", 0, 5)
    made.ask("run", "a->b", "--id", "r2")
    assert ranges(report_of(made, *OVER)) == [(0, 4, "start")]


def test_a_failover_knows_it_without_its_source(made: World) -> None:
    begun(made, TURN, "ferry.start = latest", topics={"users": 1})
    made.ask("run", "a->b", "--id", "r1")
    made.produce(made.a, "users", 0, 5)
    made.ask("run", "a->b", "--id", "r2")
    made.lost = made.a
    words = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-reverse", "--no-smoke", "--leave-unknown"
    report = report_of(made, *words, "--report", "reports")
    assert ranges(report) == [(0, 10, "start")]


def test_a_switch_with_nothing_passed_over_says_that_nothing_was_lost(made: World) -> None:
    begun(made, TURN, topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    made.ask("run", "a->b", "--id", "r1")
    report = report_of(made, *OVER)
    assert report["rpo"]["passed_over"] == []
    assert report["summary"].endswith("0 records were lost")
    (group,) = report["groups"]
    assert group["skipped"] == 0


def test_what_a_switch_passes_over_on_the_way_back_is_not_missing(made: World) -> None:
    """The reverse flow begins after what came from its own target: those records are there."""
    begun(made, TURN, IDENTITY, topics={"users": 1})
    made.ask("pause", "b->a", "--reason", "standby")
    made.ask("run", "a->b", "--id", "r1")
    over = made.ask(*OVER)
    assert over.code == 0, over.out + over.err
    made.produce(made.b, "users", 0, 5)
    back = made.ask("failback", "a->b", "--id", "s-2", "--quiet-seconds", "0", "--approve-by", "bob")
    assert back.code == 0, back.out + back.err
    assert made.ask("reports", "switch", "a->b", "s-2").body["rpo"]["passed_over"] == []


def test_a_tabletop_drill_counts_what_was_skipped(made: World) -> None:
    skipped(made)
    report = report_of(made, "drills", "tabletop", "a->b", "--report", "reports")
    assert ranges(report) == [(10, 13, "stuck")]
    assert "3 offsets" in report["summary"]


def test_a_way_back_that_begins_at_latest_counts_what_was_there_before_the_switch(made: World) -> None:
    begun(made, TURN, "b->a.ferry.start = latest", topics={"users": 1})
    made.b.topic("users", 1)
    made.produce(made.b, "users", 0, 7)
    made.ask("run", "a->b", "--id", "r1")
    assert made.ask(*OVER).code == 0
    (found,) = [one for one in made.ask("readiness", "b->a").body["checks"] if one["name"] == "passed-over"]
    assert "7 offsets" in found["message"]
    assert "users-0" in found["message"]
