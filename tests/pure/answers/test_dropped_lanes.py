"""Which topics a dropped lane takes with it, where the names of two flows begin the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world

LANE = "backfill-june"
OTHERS, UNFINISHED = f"a.east.users.backfill.{LANE}", f"a.users.backfill.{LANE}"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A lane, a topic of it that its ledger does not have, and one that another flow may have made."""
    with world(tmp_path) as made:
        begun(made, topics={"users": 1, "orders": 1})
        window = "--from-offset", "orders:0:2", "--to-offset", "orders:0:7"
        assert made.ask("backfill", "a->b", "--lane", LANE, *window).code == 0
        made.b.topic(UNFINISHED, 1)
        made.b.topic(OTHERS, 1)
        yield made


@pytest.mark.parametrize("other_flow", [True, False])
def test_a_topic_of_a_longer_alias_stays(made: World, other_flow: bool) -> None:
    if other_flow:
        made.b.topic("ferry-ledger.a.east.internal", 1, ledger=False)
    dropped = made.ask("lanes", "drop", "a->b", LANE, "--yes").body["topics"]
    assert (UNFINISHED in dropped, OTHERS in dropped) == (True, not other_flow)
