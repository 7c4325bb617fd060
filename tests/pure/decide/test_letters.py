"""Dead letters: what they tell, and the topic that they go to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import Poison
from ferry.config.settings import parse_settings
from ferry.features.records.rules.dead_letters import PoisonRule, letter_headers, letter_partition, poison_sentence
from ferry.model import Flow, RefusalKind
from ferry.plan.rules.dead_letters import clashing, letters_topic, skipping
from ferry.plan.rules.planning import decide_plan
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RULES, facts_with, part, topic

FLOW = Flow(source="a", target="b")
RULE = PoisonRule(transform="masked", poison=Poison.SKIP, letters=DeadLetters(topic="dead"))
FILE = (
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
    "ferry.transforms = masked\nferry.transform.masked.topics = pay.*\nferry.transform.masked.where = TRUE\n"
    "ferry.transform.masked.poison = skip\n"
)


def flow(more: str = "") -> FlowConfig:
    return parse_settings(FILE + more, "f").flow("a->b")


def test_a_letter_tells_where_it_comes_from_and_why_it_is_here() -> None:
    assert dict(letter_headers(RULE, FLOW, "payments", 3, 4711, 1_700_000_000_123, "it is no\nJSON ü")) == {
        b"__connect.errors.topic": b"payments",
        b"__connect.errors.partition": b"3",
        b"__connect.errors.offset": b"4711",
        b"__connect.errors.connector.name": b"a->b",
        b"__connect.errors.stage": b"TRANSFORMATION",
        b"__connect.errors.class.name": b"ferry.transform.masked",
        b"__connect.errors.exception.message": "it is not JSON ü".encode(),
        b"ferry.errors.cluster": b"a",
        b"ferry.errors.timestamp": b"1700000000123",
    }
    long = dict(letter_headers(RULE, FLOW, "t", 0, 0, 0, "x" * 5_000))[b"__connect.errors.exception.message"]
    assert len(long) < 1_100
    plain = replace(RULE, letters=DeadLetters(topic="dead", context=False))
    assert letter_headers(plain, FLOW, "t", 0, 0, 0, "why") == []


def test_letters_of_one_partition_lie_together() -> None:
    assert [letter_partition(number, 3) for number in range(5)] == [0, 1, 2, 0, 1]


def test_a_refused_record_is_told_with_its_place_and_the_ways_on(golden: Golden) -> None:
    golden(poison_sentence(RULE, "payments", 3, 4711, "its value is not JSON"))


def test_only_topics_whose_poison_becomes_letters_need_their_topic() -> None:
    facts = facts_with(FACTS, source={"topics": {name: topic(name, part()) for name in ("payments", "clicks")}})
    plan = decide_plan(RULES, facts, "r", 1)
    assert {piece.source.topic for piece in plan.slices} == {"payments", "clicks"}
    assert skipping(flow(), plan) == {"payments": "masked"}
    passing = [replace(one, poison=Poison.PASS) for one in flow().records.transforms]
    assert skipping(replace(flow(), records=replace(flow().records, transforms=tuple(passing))), plan) == {}


@pytest.mark.parametrize(
    ("lines", "usual", "factor"),
    [
        ("", 3, 3),
        ("", -1, -1),
        ("", 9, 3),
        ("errors.deadletterqueue.topic.replication.factor = 2\n", 3, 2),
        ("errors.deadletterqueue.topic.replication.factor = -1\n", 3, -1),
    ],
)
def test_the_topic_is_made_as_others_are_and_keeps_what_it_has(lines: str, usual: int, factor: int) -> None:
    payments = topic("payments", part(), configs={"max.message.bytes": "5000000", "retention.ms": "5"})
    facts = facts_with(FACTS, source={"topics": {"payments": payments}}, target={"brokers": 3})
    change = letters_topic(flow(lines), facts, usual, {"payments": "masked"})
    assert (change.topic, change.partitions, change.replication_factor) == (
        "ferry-dead-letters.a.internal",
        1,
        factor,
    )
    assert dict(change.configs) == {
        "cleanup.policy": "delete",
        "max.message.bytes": str(5_000_000 + 65_536),
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }
    assert dict(letters_topic(flow(), FACTS, 1, {}).configs)["max.message.bytes"] == str(1_048_588 + 65_536)


def test_a_topic_that_the_flow_copies_to_takes_no_letters(golden: Golden) -> None:
    facts = facts_with(FACTS, source={"topics": {"payments": topic("payments", part())}})
    plan = decide_plan(RULES, facts, "r", 1)
    clash = replace(flow(), records=replace(flow().records, dead_letters=DeadLetters(topic="a.payments")))
    (refusal,) = clashing(clash, plan, skipping(clash, plan)).values()
    assert refusal.kind is RefusalKind.NAME_CLASH
    golden(refusal.message)
    assert clashing(flow(), plan, skipping(flow(), plan)) == {}
