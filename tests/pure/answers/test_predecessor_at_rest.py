"""Whether MirrorMaker still runs, where the target does not list its group to Ferry's login: unknown is not stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.features.migrate.rules.connect_offsets import SOURCE_CONNECTOR, format_key, format_value
from ferry.kafka.connect import codes
from ferry.model import Record, TopicPartition
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world
from tests.pure.scripted.faults import Fault

pytestmark = pytest.mark.slow
OFFSETS, STATUS = "mm2-offsets.a.internal", "status"
CONNECT = "--offsets-topic", "connect-offsets", "--worker-group", "workers"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A MirrorMaker 2, dedicated or on Kafka Connect, has copied a part of orders to b, and Ferry has copied users."""
    with world(tmp_path) as made:
        begun(made, topics={"orders": 1, "users": 1})
        made.ask("run", "a->b", "--topic", "users")
        made.b.topic("a.orders", 1)
        made.produce(made.b, "a.orders", 0, 4)
        position = format_key(SOURCE_CONNECTOR, "a", TopicPartition(topic="orders", partition=0)), format_value(4)
        for topic in (OFFSETS, "connect-offsets"):
            written(made, topic, *position)
        made.b.groups |= {"a-mm2": {}, "workers": {}}
        yield made


def written(made: World, topic: str, key: bytes, value: bytes) -> None:
    """A topic of MirrorMaker 2 with one record more."""
    made.b.topic(topic, 1)
    made.b.append(topic, build_batch([Record(key=key, value=value)], made.now_ms, ProducerIdentity()), 0)


def asked(made: World, verb: str, *more: str) -> Answer:
    topic = "users" if verb == "hand-back" else "orders"
    return made.ask("migrate", verb, "a->b", "--topic", topic, *more, "--dry-run")


def is_refused(answer: Answer) -> bool:
    assert (answer.code == 0) is ("error" not in answer.body), answer.out
    return answer.code != 0


@pytest.mark.parametrize("active", [True, False], ids=["it runs", "it is down"])
@pytest.mark.parametrize("verb", ["mm2", "hand-back"])
def test_a_group_that_the_login_may_not_describe_is_not_taken_as_down(made: World, verb: str, active: bool) -> None:
    made.b.seen, made.b.active = {"billing"}, {"a-mm2"} if active else set()
    assert is_refused(asked(made, verb))
    made.b.seen = {"a-mm2"}
    assert is_refused(asked(made, verb)) is active
    del made.b.groups["a-mm2"]
    made.b.active.clear()
    assert not is_refused(asked(made, verb)), "the login may describe the group, so there is none"
    made.b.seen = None
    assert not is_refused(asked(made, verb))


def test_mirrormaker_1_is_not_taken_as_down_either(made: World) -> None:
    made.commit(made.a, "mirror", orders_0=4)
    made.a.seen, made.a.active = {"billing"}, {"mirror"}
    assert is_refused(asked(made, "mm1", "--group", "mirror"))


@pytest.mark.parametrize("verb", ["mm2", "hand-back"])
@pytest.mark.parametrize("why", ["denied", "silent", "mute"])
def test_workers_that_are_not_known_to_be_down_are_not_taken_as_down(made: World, verb: str, why: str) -> None:
    """Then the connector's state counts, where it can be read."""
    made.b.active = {"workers"}
    if why == "denied":
        made.b.seen = {"billing"}
    elif why == "silent":
        made.b.nodes = (1, 2)
        made.b.coordinators["workers"] = 2
        made.b.faults.append(Fault(api="ListGroups", lost=True, times=10**6, only=lambda one: one.node == 2))
    else:
        made.b.mute = True
    assert is_refused(asked(made, verb, *CONNECT)) is (why != "mute"), "what moves shows nothing of unknown workers"
    for state, refused in (("RUNNING", True), ("STOPPED", False)):
        value = json.dumps({"state": state, "worker_id": "w:8083"}).encode()
        written(made, STATUS, f"status-connector-{SOURCE_CONNECTOR}".encode(), value)
        assert is_refused(asked(made, verb, *CONNECT, "--status-topic", STATUS)) is refused


def test_a_group_that_goes_between_two_questions_is_down(made: World) -> None:
    made.b.mute = True
    made.b.faults.append(Fault(api="DescribeGroups", code=codes.GROUP_ID_NOT_FOUND))
    assert not is_refused(asked(made, "hand-back"))
