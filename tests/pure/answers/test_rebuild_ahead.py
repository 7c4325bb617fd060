"""A rebuild names what was copied after the export: also partitions and lanes of which the export has nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ferry.kafka.connect import codes
from ferry.model import RefusalKind, TopicPartition
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world
from tests.pure.scripted.faults import At, Fault

pytestmark = pytest.mark.slow
EXPORT = "ledger", "export", "a->b", "--output", "out.jsonl"
REBUILD = "ledger", "rebuild", "a->b", "--input", "out.jsonl"
WINDOW = "backfill", "a->b", "--lane", "backfill-june", "--from-offset", "users:0:2", "--to-offset", "users:0:7"
LEDGER = "ferry-ledger.a.internal"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A flow of two topics, of which one was copied before the export."""
    with world(tmp_path) as made:
        begun(made, topics={"users": 1, "orders": 2})
        assert made.ask("run", "a->b", "--topic", "users").code == 0
        assert made.ask(*EXPORT).code == 0
        yield made


def ahead(body: dict[str, Any]) -> dict[TopicPartition, tuple[int, int]]:
    """What the export has, and what was copied, by partition."""
    return {
        TopicPartition(topic=one["target_topic"], partition=one["target_partition"]): (one["exported"], one["copied"])
        for one in body["ahead"]
    }


def test_partitions_and_lanes_that_were_first_copied_after_the_export_are_named(made: World) -> None:
    made.produce(made.a, "users", 0, 3)
    assert made.ask("run", "a->b").code == 0
    assert made.ask(*WINDOW).code == 0
    made.b.delete(LEDGER)
    dry = made.ask(*REBUILD, "--dry-run")
    wanted = {
        TopicPartition(topic="a.orders", partition=0): (0, 10),
        TopicPartition(topic="a.orders", partition=1): (0, 8),
        TopicPartition(topic="a.users", partition=0): (10, 13),
        TopicPartition(topic="a.users.backfill.backfill-june", partition=0): (0, 7),
    }
    assert (dry.code, ahead(dry.body)) == (1, wanted)
    done = made.ask(*REBUILD)
    assert (done.code, ahead(done.body)) == (1, wanted)
    plan = made.ask("plan", "a->b").body
    refused = {(one["topic"], one["partition"]): one["kind"] for one in plan["refusals"]}
    assert refused.keys() == {("orders", 0), ("orders", 1), ("users", 0)}, "as the rebuild said"
    assert set(refused.values()) <= {RefusalKind.LEDGER_BEHIND, RefusalKind.FOREIGN_WRITER}


def test_an_export_that_has_all_has_nothing_ahead(made: World) -> None:
    made.b.delete(LEDGER)
    answer = made.ask(*REBUILD, "--dry-run")
    assert (answer.code, ahead(answer.body)) == (0, {})


@pytest.mark.parametrize(
    ("api", "at", "code"),
    [
        ("OffsetFetch", At.OUTER, codes.GROUP_AUTHORIZATION_FAILED),
        ("OffsetFetch", At.INNER, codes.TOPIC_AUTHORIZATION_FAILED),
        ("ListGroups", At.OUTER, codes.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_positions_that_cannot_be_read_are_not_taken_as_none(made: World, api: str, at: At, code: int) -> None:
    made.b.delete(LEDGER)
    made.b.faults.append(Fault(api=api, code=code, at=at, times=10**6))
    answer = made.ask(*REBUILD, "--dry-run")
    assert answer.code != 0
    assert "error" in answer.body
