"""A partition of which nothing can be copied, whose log does not begin at 0: its copy ends before the source's offsets.

Clients would write there at offsets that the source has used, and offsets that readers keep elsewhere would be false.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.features.identical.rules.empty import MOST_BYTES
from ferry.kafka.connect import codes
from ferry.model import TopicPartition
from ferry.wire.batch import HEADER_BYTES
from tests.pure.answers.stories import HEARTBEATS, begun
from tests.pure.answers.test_identical_switch import AWAY, HOUR_MS, STOPPED, step_of
from tests.pure.answers.world import World, world
from tests.pure.identical.test_slot import BROKER, SETTINGS
from tests.pure.scripted.faults import Fault

IDLE = "a.audit-0"
BEGINS = 1_000
AT_ONCE = 400
"""Empty records of a batch here."""
KEPT = ("a->b.ferry.offsets = identical", "a->b.ferry.offsets.may.lose = true", "a->b.ferry.offsets.may.pass = true")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Retention has taken all records of a topic at the source, before the flow ran for the first time."""
    with world(tmp_path) as found:
        begun(found)
        found.a.topic("audit", 1)
        found.produce(found.a, "audit", 0, BEGINS)
        found.a.begins[TopicPartition("audit", 0)] = BEGINS
        found.write("topics = orders, audit", "groups = billing.*", *HEARTBEATS, *KEPT)
        limit = {"max.message.bytes": str(HEADER_BYTES + AT_ONCE * MOST_BYTES)}
        found.b.settings |= SETTINGS | BROKER | limit
        yield found


def ran(made: World) -> None:
    assert made.ask("run", "a->b").code == 0


def offsets_check(checks: Any) -> list[tuple[bool, bool]]:
    """Whether the checks of offsets that name the partition hold, and whether they warn."""
    return [(one["ok"], one["warns"]) for one in checks if one["name"] == "offsets" and IDLE in one["message"]]


def noted(answer: Any) -> bool:
    return any(IDLE in note for note in answer.body["notes"])


def loss_row(answer: Any) -> Any:
    return next(row for row in step_of(answer, "loss")["rows"] if row["topic"] == "audit")


@pytest.mark.slow
def test_a_plan_names_it_before_the_first_run_and_later(made: World) -> None:
    assert noted(made.ask("plan", "a->b"))
    ran(made)
    assert noted(made.ask("plan", "a->b"))
    assert made.b.log("a.audit", 0).end == 0
    made.produce(made.a, "audit", 0, 1)
    assert not noted(made.ask("plan", "a->b"))
    ran(made)
    assert (made.b.begins[TopicPartition("a.audit", 0)], made.b.log("a.audit", 0).end) == (BEGINS, BEGINS + 1)
    assert not noted(made.ask("plan", "a->b"))


def test_a_topic_that_does_not_keep_its_offsets_is_not_named(made: World) -> None:
    made.write("topics = orders, audit", *HEARTBEATS, *KEPT, "a->b.ferry.offsets.topics = orders")
    assert not noted(made.ask("plan", "a->b"))
    ran(made)
    assert not any(IDLE in one["message"] for one in made.ask("readiness", "a->b").body["checks"])


def test_a_switchover_is_refused_until_a_record_has_come(made: World) -> None:
    ran(made)
    assert offsets_check(made.ask("readiness", "a->b").body["checks"]) == [(False, False)]
    refused = made.ask("switchover", *AWAY, "--quiet-seconds", "0")
    assert (refused.code != 0, IDLE in refused.out) == (True, True), refused
    assert made.ask("switches", "list", "a->b").body["switches"] == []
    made.produce(made.a, "audit", 0, 1)
    assert offsets_check(made.ask("readiness", "a->b").body["checks"]) == []


@pytest.mark.slow
def test_a_switchover_whose_copy_ends_earlier_after_the_drain_stops_with_its_name(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> dict[TopicPartition, object]:
        return {}

    ran(made)
    monkeypatch.setattr("ferry.features.identical.acts.late.look_short", nothing)
    stopped = made.ask("switchover", *AWAY, "--quiet-seconds", "0")
    assert (stopped.code, IDLE in stopped.body["error"]["message"]) == (STOPPED, True), stopped


@pytest.mark.slow
def test_a_failover_counts_the_loss_from_the_targets_end(made: World) -> None:
    ran(made)
    assert made.ask("drills", "tabletop", "a->b").body["rpo"]["records"] == BEGINS
    shown = made.ask("failover", "a->b", "--no-reverse", "--dry-run")
    assert offsets_check(shown.body["readiness"]["checks"]) == [(True, True)]
    done = made.ask("failover", *AWAY)
    row, loss = loss_row(done), step_of(done, "loss")
    assert (done.code, row["start"], row["end"], row["seconds"]) == (0, 0, BEGINS, None), done
    assert ("outside of Kafka" in loss["sentence"], IDLE in step_of(done, "stop")["sentence"]) == (True, True)


@pytest.mark.slow
def test_a_failover_among_the_empty_records_counts_the_loss_from_the_targets_end(made: World) -> None:
    made.produce(made.a, "audit", 0, 5)
    fault = Fault(api="Produce", topic="a.audit", skip=1, code=codes.TOPIC_AUTHORIZATION_FAILED, times=99)
    made.b.faults.append(fault)
    assert made.ask("run", "a->b").code != 0
    assert made.b.log("a.audit", 0).end == AT_ONCE
    assert made.ask("failover", *AWAY, "--id", "f-1").code == STOPPED, "a batch may arrive"
    made.now_ms += 2 * HOUR_MS
    done = made.ask("failover", *AWAY, "--id", "f-1")
    row = loss_row(done)
    assert (done.code, row["start"], row["end"]) == (0, AT_ONCE, BEGINS + 5), done
