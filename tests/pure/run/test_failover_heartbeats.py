"""A failover where heartbeats are copied, as with flows both ways: they always grow, and belong to no switch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pure.answers.stories import IDENTITY
from tests.pure.answers.world import World, world

GONE = "a.bootstrap.servers = 127.0.0.1:1"
FILE = ("topics = users", "groups = billing.*")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as one:
        yield one


@pytest.mark.parametrize("policy", [(), (IDENTITY,)], ids=["Default", "Identity"])
def test_copied_heartbeats_keep_no_failover_from_its_target_and_count_as_no_loss(
    made: World, policy: tuple[str, ...]
) -> None:
    made.write(*FILE, *policy)
    for topic in ("users", "heartbeats"):
        made.a.topic(topic, 1)
    for _ in range(2):  # the second run begins a slice of heartbeats after what is copied
        for topic in ("users", "heartbeats"):
            made.produce(made.a, topic, 0, 5)
        assert made.ask("run", "a->b").code == 0
    made.write(*FILE, *policy, GONE)
    found = made.ask("failover", "a->b", "--dry-run", "--no-reverse", "--patience", "1").body["readiness"]
    assert {check["name"]: check["ok"] for check in found["checks"]}["target"], found["checks"]
    assert found["partitions"] == 1
