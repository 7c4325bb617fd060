"""What a switch hands to the flow back, and which groups a failover has no checkpoint of."""

from __future__ import annotations

from typing import Any

from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.features.switch.rules.handing import handed
from ferry.features.switch.rules.moving import (
    CHECKPOINT,
    NewSide,
    Placed,
    again_sentence,
    decide_moving,
    not_known,
    set_aside,
    without_checkpoint,
)
from ferry.model import CommittedOffset, Flow, Left, TopicPartition, Why
from tests.golden import Golden
from tests.pure.decide.values import place

HERE = place("orders")
ROW: dict[str, Any] = {
    "group": "g",
    "outcome": "moved",
    "from": [["orders", 0, 40], ["mine", 0, 3]],
    "offsets": [["orders", 0, 55], ["other", 0, 9]],
}


def kept(topic: str) -> str | None:
    """A flow back that keeps the names of all topics but one, which it does not take."""
    return None if topic == "other" else topic


def at(offset: int) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """Where the group stands now on the cluster that it left."""
    return {"g": {HERE: CommittedOffset(offset=offset)}}


def test_where_a_group_stood_is_what_the_flow_back_wrote_last() -> None:
    found = handed([ROW], kept, at(40), {}, 7)
    assert found["g"].offsets == {HERE: Held(Wrote(55, 40))}
    assert found["g"].sources == {"orders": "orders"}
    assert found["g"].renewed_ms == 7


def test_what_somebody_has_moved_since_or_was_left_is_not_handed_over() -> None:
    assert handed([ROW], kept, at(0), {}, 7) == {}
    assert handed([ROW], kept, {}, {}, 7) == {}
    assert handed([{**ROW, "outcome": "left"}], kept, at(40), {}, 7) == {}
    without = {name: value for name, value in ROW.items() if name != "from"}
    assert handed([without], kept, at(40), {}, 7) == {}, "a switch by an earlier version kept nothing"


def test_what_the_flow_back_wrote_itself_stays_and_what_it_remembers_wrongly_does_not() -> None:
    own = HeldGroup(offsets={HERE: Held(Wrote(50, 40))}, sources={"orders": "orders"}, renewed_ms=1)
    assert handed([ROW], kept, at(40), {"g": own}, 7) == {}
    old = HeldGroup(offsets={HERE: Held(Wrote(9, 8)), place("mine"): Held(Wrote(1, 1))}, sources={}, renewed_ms=1)
    found = handed([ROW], kept, at(40), {"g": old}, 7)["g"]
    assert found.offsets == {HERE: Held(Wrote(55, 40)), place("mine"): Held(Wrote(1, 1))}
    assert found.renewed_ms == 1


def test_an_offset_that_no_run_wrote_is_no_checkpoint_and_holds_a_failover_up() -> None:
    held = HeldGroup(offsets={HERE: Held(Wrote(55, 40))}, sources={"orders": "orders"}, renewed_ms=0)
    placed = {HERE: Placed(place=HERE, offset=40, word=CHECKPOINT, by="via")}

    def new(offset: int | None) -> NewSide:
        return NewSide(alias="a", listed={}, offsets={} if offset is None else at(offset), ends={HERE: 90})

    for offset, again in [(None, 50), (40, 50)]:
        made = decide_moving("g", placed, (), new(offset), held)
        assert (made.why, made.again) == (None, again)
    for offset in (10, 70):
        made = decide_moving("g", placed, (), new(offset), held)
        assert made.why is not None
        assert "--leave-group g" in made.why
        assert not made.writes


def test_groups_that_the_last_run_left_are_known_although_nothing_of_them_was_written(golden: Golden) -> None:
    held = {"g": HeldGroup(offsets={HERE: Held(Wrote(1, 1))}, sources={}, renewed_ms=0)}
    left = [
        Left(group="new", place=HERE, why=Why.MOVED, message="somebody moved it"),
        Left(group="g", place=place("orders", 1), why=Why.MOVED, message="somebody moved it"),
        Left(group="g", place=HERE, why=Why.MOVED, message="what lies there now decides"),
        Left(group="share", place=None, why=Why.KIND, message="no offset"),
        Left(group="", place=None, why=Why.FAILED, message="a broker does not answer"),
    ]
    found = without_checkpoint(left, held)
    assert found == {"new": left[0], "g": left[1]}
    made = not_known(found["new"], Flow.parse("b->a"), None)
    assert made.why is not None
    golden(made.why)
    assert (made.again, made.aside) == (None, False)
    assert set_aside("share", "no offset").aside


def test_who_reads_most_again_is_named_first(golden: Golden) -> None:
    def reads(group: str, again: int | None) -> Any:
        placed = {HERE: Placed(place=HERE, offset=0, word="again", by="via", again=again)}
        return decide_moving(group, placed, (), NewSide(alias="a", listed={}, offsets={}), None)

    assert again_sentence([reads("none", 0)]) == ""
    told = again_sentence([reads("few", 1), reads("none", 0), reads("many", 9), reads("dark", None)])
    golden(told)
