"""What a drill that writes nothing says of groups: where a switch would put them, and why it would not."""

from __future__ import annotations

import base64
import uuid
from typing import Any

import pytest

from ferry.kafka.connect import codes
from tests.pure.answers.stories import IDENTITY, begun
from tests.pure.answers.world import World
from tests.pure.decide.test_museum import EXHIBITS, exhibit
from tests.pure.scripted.faults import At, Fault

DEALT = next(path for path in EXHIBITS if path.stem == "dealt" and "11-28" in str(path))


def drilled(made: World, flow: str = "a->b") -> dict[str, dict[str, Any]]:
    """The groups of a tabletop drill, by name."""
    answer = made.ask("drills", "tabletop", flow)
    assert answer.body["groups"], answer.err
    return {one["group"]: one for one in answer.body["groups"]}


def of_text(topic_id: str) -> uuid.UUID:
    """The id of a topic, as Kafka's tools print it."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(topic_id + "=="))


def test_a_group_goes_on_in_each_partition_of_a_repartitioned_copy(made: World) -> None:
    made.load(exhibit(DEALT))
    made.a.alias = "LEl5N0VDQRWi8_BLqTOwEg"
    made.a.topic("grain", 5)
    made.a.ids["grain"] = of_text("FuAidFGSTCKrgxrsoRpaSg")
    for number in range(5):
        made.produce(made.a, "grain", number, 26 if number < 3 else 21)
    made.b.topic("field.grain", 3)
    made.b.ids["field.grain"] = of_text("6mli4-IWQJOCBD-e_pPDjQ")
    for number, end in enumerate((21, 38, 27)):
        made.produce(made.b, "field.grain", number, end)
    made.commit(made.a, "billing", grain_0=18, grain_1=17, grain_2=17, grain_3=14, grain_4=14)
    found = drilled(made, "field->tfield")["billing"]
    assert (found["partitions"], found["committed"], found["note"]) == (3, 3, "")
    made.b.ids["field.grain"] = uuid.uuid4()
    found = drilled(made, "field->tfield")["billing"]
    assert (found["partitions"], found["committed"]) == (3, 0)
    assert "target-changed" in found["note"]


def test_a_group_whose_map_does_not_hold_is_noted_and_the_others_are_shown(made: World) -> None:
    begun(made, "b->a.enabled = true", "groups = billing.*, audit", topics={"orders": 1, "users": 1})
    made.commit(made.a, "billing", orders_0=4)
    made.commit(made.a, "audit", users_0=7)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.b.ids["a.orders"] = uuid.uuid4()
    found = drilled(made)
    assert (found["audit"]["committed"], found["audit"]["note"]) == (1, "")
    assert found["billing"]["committed"] == 0
    assert "target-changed" in found["billing"]["note"]


def test_a_group_in_a_merged_topic_is_not_moved(made: World) -> None:
    begun(made, IDENTITY, "ferry.merge.topics = orders", topics={"orders": 1, "users": 1})
    made.commit(made.a, "billing", orders_0=4, users_0=4)
    made.commit(made.a, "billing-users", users_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    found = drilled(made)
    assert (found["billing"]["committed"], found["billing-users"]["committed"]) == (0, 1)
    assert "ferry.merge.topics" in found["billing"]["note"]


@pytest.mark.slow
def test_a_group_at_what_came_from_the_other_cluster_is_placed_there(made: World) -> None:
    lines = IDENTITY, "ferry.guard.foreign.writer = skip"
    begun(made, *lines, topics={"orders": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.produce(made.b, "orders", 0, 10)
    begun_back = ("a->b.enabled = false", "b->a.enabled = true", "b->a.ferry.start = orders:0:11")
    begun_lines = ("topics = orders", "groups = billing.*", "emit.heartbeats.enabled = false")
    made.write(*begun_lines, "heartbeats.replication.enabled = false", *lines, *begun_back)
    assert made.ask("run", "b->a", "--id", "r2").code == 0
    made.write(*begun_lines, "heartbeats.replication.enabled = false", *lines)
    made.commit(made.a, "billing", orders_0=14)
    found = drilled(made)["billing"]
    assert (found["committed"], found["beyond"], found["note"]) == (1, 0, "")


def test_a_group_before_the_first_copied_record_gets_an_offset_in_the_live_lane(made: World) -> None:
    begun(made, "ferry.start = orders:0:4", topics={"orders": 1})
    made.commit(made.a, "billing", orders_0=1)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    found = drilled(made)["billing"]
    assert (found["committed"], found["note"]) == (1, "")


def test_a_group_that_the_source_hides_is_not_called_absent(made: World) -> None:
    begun(made, topics={"orders": 1})
    made.commit(made.a, "billing", orders_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    del made.a.groups["billing"]  # a login without DESCRIBE on it is not given it in a list
    code = codes.GROUP_AUTHORIZATION_FAILED
    made.a.faults.append(Fault(api="OffsetFetch", code=code, at=At.LISTED, key="billing", times=10**6))
    notes = made.ask("drills", "tabletop", "a->b").body["notes"]
    assert [note for note in notes if "billing" in note and "DESCRIBE" in note]
    named = made.ask("drills", "partial", "a->b", "--group", "billing", "--approve-by", "bob")
    assert (named.code, "DESCRIBE" in named.body["summary"]) == (2, True)
