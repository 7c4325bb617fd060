"""Switches of a flow with identical offsets by the command line: what moves, what waits, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.kafka.connect import codes
from tests.pure.answers.stories import HEARTBEATS, begun
from tests.pure.answers.world import World, world
from tests.pure.identical.test_slot import BROKER, SETTINGS
from tests.pure.scripted.faults import Fault

AWAY = ("a->b", "--no-reverse", "--approve-by", "ann", "--no-smoke")
HOUR_MS = 3_600_000
STOPPED = 4
"""The exit code of a switch that stopped at a step."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A flow that has run once."""
    with world(tmp_path) as found:
        begun(found)
        kept = ("a->b.ferry.offsets = identical", "a->b.ferry.offsets.may.lose = true")
        found.write("topics = orders", "groups = billing.*", *HEARTBEATS, *kept)
        found.b.settings |= SETTINGS | BROKER
        found.commit(found.a, "billing", orders_0=4, orders_1=6)
        assert found.ask("run", "a->b", "--id", "r1").code == 0
        yield found


def step_of(answer: Any, name: str) -> Any:
    """What a step of a switch found."""
    return next(one for one in answer.body["steps"] if one["step"] == name)


@pytest.mark.slow
def test_it_is_ready_but_for_the_flow_back_and_a_switchover_moves_groups_to_the_same_numbers(made: World) -> None:
    ready = made.ask("readiness", "a->b")
    assert (ready.code, [one["name"] for one in ready.body["checks"] if not one["ok"]]) == (1, ["reverse"]), ready
    assert {one["name"]: one["ok"] for one in ready.body["checks"]}["offsets"]
    made.produce(made.a, "orders", 0, 5)
    done = made.ask("switchover", *AWAY, "--quiet-seconds", "0")
    assert (done.code, done.body["next_step"]) == (0, None), done
    rows = {row["group"]: row["offsets"] for row in step_of(done, "groups")["rows"]}
    assert [row for row in rows["billing"] if row[0] == "a.orders"] == [["a.orders", 0, 4], ["a.orders", 1, 6]]


def test_a_size_limit_at_the_target_is_a_warning_with_the_setting(made: World) -> None:
    made.b.settings["retention.bytes"] = str(1 << 40)
    (check,) = (one for one in made.ask("readiness", "a->b").body["checks"] if one["name"] == "offsets")
    assert (check["ok"], check["warns"], "config.properties.exclude" in check["message"]) == (True, True, True)
    made.b.settings["connections.max.idle.ms"] = "-1"
    (check,) = (one for one in made.ask("readiness", "a->b").body["checks"] if one["name"] == "offsets")
    assert not check["ok"], "the wait has no end that is known"


def test_a_switch_that_would_start_a_flow_back_with_other_offsets_is_refused_before_anything_is_written(
    made: World,
) -> None:
    made.write(*HEARTBEATS, "b->a.enabled = true", "a->b.ferry.offsets = identical")
    for verb in ("switchover", "failover"):
        answer = made.ask(verb, "a->b", "--approve-by", "ann")
        assert (answer.code, "--no-reverse" in answer.body["error"]["message"]) == (2, True)
    assert made.ask("failback", "a->b", "--approve-by", "ann").code == 2
    assert made.ask("switches", "list", "a->b").body["switches"] == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["switchover", "failover"])
def test_a_lane_that_wrote_identical_offsets_is_switched_when_the_file_says_so_again(made: World, verb: str) -> None:
    asked = (verb, *AWAY, *(("--quiet-seconds", "0") if verb == "switchover" else ()))
    flow = ("topics = orders", "groups = billing.*", *HEARTBEATS, "a->b.ferry.offsets.may.lose = true")
    made.write(*flow, "a->b.ferry.offsets = translated")
    refused = made.ask(*asked)
    assert (refused.code, "ferry.offsets = identical" in refused.body["error"]["message"]) == (2, True), refused
    made.write(*flow, "a->b.ferry.offsets = identical")
    assert made.ask(*asked).code == 0
    again = made.ask(*asked)
    assert (again.code, "failback" in again.body["error"]["message"]) == (2, False), again


@pytest.mark.slow
def test_a_failover_counts_records_without_a_receipt_as_there(made: World) -> None:
    """All that a run planned is at the target, so nothing can arrive. The run died before its receipts."""
    made.produce(made.a, "orders", 0, 5)
    made.b.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
    assert made.ask("run", "a->b", "--id", "r2").code != 0
    assert made.b.log("a.orders", 0).end == 15
    assert made.ask("drills", "tabletop", "a->b").body["rpo"]["records"] == 0
    done = made.ask("failover", *AWAY)
    loss = step_of(done, "loss")
    assert (done.code, loss["facts"]["records"], "outside of Kafka" in loss["sentence"]) == (0, 0, False), done


@pytest.mark.slow
def test_a_group_past_the_last_receipt_reads_what_has_none_again_and_the_report_counts_it(made: World) -> None:
    made.produce(made.a, "orders", 0, 5)
    made.b.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
    assert made.ask("run", "a->b", "--id", "r2").code != 0
    made.commit(made.a, "billing", orders_0=13, orders_1=6)
    done = made.ask("failover", *AWAY)
    (row,) = (one for one in step_of(done, "groups")["rows"] if one["group"] == "billing")
    assert [one[2] for one in row["offsets"] if one[:2] == ["a.orders", 0]] == [10], row
    assert row["again"] == 3, row


def test_a_failover_begins_if_what_may_arrive_cannot_be_read(made: World) -> None:
    made.b.faults.append(Fault(api="DescribeConfigs", code=codes.REQUEST_TIMED_OUT, times=999))
    shown = made.ask("failover", "a->b", "--no-reverse", "--dry-run")
    (check,) = (one for one in shown.body["readiness"]["checks"] if one["name"] == "offsets")
    assert (check["ok"], check["known"]) == (True, False), check


@pytest.mark.slow
def test_a_failover_waits_while_a_batch_may_arrive_and_continues_then(made: World) -> None:
    made.produce(made.a, "orders", 0, 5)
    made.b.faults.append(Fault(api="Produce", topic="a.orders", code=codes.TOPIC_AUTHORIZATION_FAILED, times=99))
    assert made.ask("run", "a->b", "--id", "r2").code != 0
    assert made.b.log("a.orders", 0).end == 10
    drill = made.ask("drills", "tabletop", "a->b")
    assert any("a.orders-0" in note for note in drill.body["notes"]), drill
    shown = made.ask("failover", "a->b", "--no-reverse", "--dry-run")
    assert [one["ok"] for one in shown.body["readiness"]["checks"] if one["name"] == "offsets"] == [True]
    first = made.ask("failover", *AWAY, "--id", "f-1")
    assert (first.code, "a.orders-0" in first.body["error"]["message"]) == (STOPPED, True), first
    made.now_ms += HOUR_MS
    assert made.ask("failover", *AWAY, "--id", "f-1").code == STOPPED
    made.now_ms += HOUR_MS // 3
    done = made.ask("failover", *AWAY, "--id", "f-1")
    loss = step_of(done, "loss")
    assert (done.code, loss["facts"]["records"], "outside of Kafka" in loss["sentence"]) == (0, 5, True), done
    assert [row["start"] for row in loss["rows"] if row["records"]] == [10]


@pytest.mark.slow
@pytest.mark.parametrize("records", [0, 1, 2])
def test_each_record_of_a_client_after_the_copy_is_named_because_no_marker_follows(made: World, records: int) -> None:
    if records:
        made.produce(made.b, "a.orders", 0, records)
    if made.ask("failover", *AWAY, "--id", "f-1").code == STOPPED:  # the end is not the lane's: a batch may arrive
        made.now_ms += 2 * HOUR_MS
        made.ask("failover", *AWAY, "--id", "f-1")
    stop = step_of(made.ask("switches", "show", "a->b", "f-1"), "stop")
    assert (stop["facts"]["written_by_others"], "a.orders-0" in stop["sentence"]) == (bool(records), bool(records))
