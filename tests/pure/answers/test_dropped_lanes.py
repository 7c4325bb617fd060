"""Which topics and groups a dropped lane takes with it, where the names of two flows begin or end the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.protocol.names import ledger_topic
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world

LANE = "backfill-june"
OTHERS, UNFINISHED = f"a.east.users.backfill.{LANE}", f"a.users.backfill.{LANE}"
OWN, FOREIGN = f"a.orders.backfill.{LANE}", f"c.orders.backfill.{LANE}"
DROP = "lanes", "drop", "a->b", LANE, "--yes"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A lane, a topic of it that its ledger does not have, and two that other flows may have made."""
    with world(tmp_path) as made:
        begun(made, topics={"users": 1, "orders": 1})
        window = "--from-offset", "orders:0:2", "--to-offset", "orders:0:7"
        assert made.ask("backfill", "a->b", "--lane", LANE, *window).code == 0
        for name in (UNFINISHED, OTHERS, FOREIGN):
            made.b.topic(name, 1)
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("ledger", ["shown", "hidden", "none"])
def test_a_topic_of_a_longer_alias_stays(made: World, ledger: str) -> None:
    if ledger != "none":
        made.b.topic(ledger_topic("a.east"), 1, ledger=False)
    if ledger == "hidden":
        made.b.hidden = {ledger_topic("a.east")}
    dropped = made.ask(*DROP).body["topics"]
    assert (UNFINISHED in dropped, OTHERS in dropped, FOREIGN in dropped) == (True, ledger == "none", False)


def test_a_group_that_has_offsets_in_topics_of_another_flow_stays(made: World) -> None:
    own, foreign, both, nowhere = (f"{name}.backfill.{LANE}" for name in ("own", "foreign", "both", "nowhere"))
    made.commit(made.b, own, **{f"{OWN}_0": 1})
    made.commit(made.b, foreign, **{f"{FOREIGN}_0": 1})
    made.commit(made.b, both, **{f"{OWN}_0": 1, f"{FOREIGN}_0": 1})
    made.commit(made.b, nowhere)
    assert made.ask(*DROP).code == 0
    assert {own, foreign, both, nowhere} & made.b.groups.keys() == {foreign, both, nowhere}


def test_a_topic_that_may_be_there_is_not_forgotten(made: World) -> None:
    made.b.hidden = {OWN}
    answer = made.ask(*DROP)
    assert (answer.code != 0, OWN in answer.err) == (True, True)
    made.b.hidden.clear()
    assert OWN in made.ask(*DROP).body["topics"]


@pytest.mark.slow
def test_a_topic_that_the_lane_made_goes_if_the_ledger_of_a_longer_alias_is_hidden(made: World) -> None:
    made.b.delete(OTHERS)
    made.b.hidden = {ledger_topic("a.east")}
    made.write("topics = orders, east.users")
    made.a.topic("east.users", 1)
    made.produce(made.a, "east.users", 0, 5)
    window = "--from-offset", "east.users:0:0", "--to-offset", "east.users:0:3"
    assert made.ask("backfill", "a->b", "--lane", LANE, *window).code == 0
    assert OTHERS in made.ask(*DROP).body["topics"]
