"""The cards of a flow's clusters: the worst is the badge, and what is not known is called so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.features.doctor.rules.clusters import (
    MOST_SHOWN,
    BrokerFacts,
    ClusterFacts,
    Load,
    PartitionHealth,
    ShortPartition,
    Steering,
)
from ferry.ledger.ledger import UNREAD
from ferry.model import Flow, TopicPartition
from ferry.reader.documents import Answer, ClustersStory, ClusterStory, Trouble
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.cluster_cards import MOST_BROKERS, OLD_MS, ClusterCard, cards_of
from ferry_airflow.page.run_words import Condition
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.everything import filled

FLOW = Flow(source="primary", target="backup")
UP = BrokerFacts(id=1, address="h:9092", version=(4, 1))
DEAD = BrokerFacts(id=2, why="it is down")
HEALTH = PartitionHealth(partitions=4, offline=0, under_replicated=0, loads=(Load(broker=1, leads=4, replicas=4),))
SHORT = ShortPartition(place=TopicPartition(topic="orders", partition=1), offline=False, in_sync=1, replicas=2)
WELL = ClusterStory(
    alias="primary",
    asked_ms=1,
    facts=ClusterFacts(alias="primary", cluster_id="x", brokers=(UP,)),
    steering=Steering(controller=1, protocol="metadata.version 4.1 (level 27)"),
    health=HEALTH,
)


def card(story: ClusterStory) -> ClusterCard:
    return cards_of(FLOW, Answer(got=ClustersStory(source=story, target=WELL), at_ms=1), (), 1)[0]


@pytest.mark.parametrize("answer", [Answer(error="no reader", failed_ms=2, at_ms=1), Answer(at_ms=1 - OLD_MS)])
def test_an_answer_that_is_not_of_now_shows_no_state_of_now(answer: Answer) -> None:
    old = replace(answer, got=ClustersStory(source=WELL, target=with_brokers(UP, DEAD)))
    for one in cards_of(FLOW, old, (), 2):
        assert (one.badge.condition, one.is_past) == (Condition.UNKNOWN, True)
        assert one.brokers, "what they showed last"
        assert {line.condition for line in one.lines} <= {Condition.UNKNOWN}


def test_a_cluster_that_did_not_answer_the_last_poll_is_not_well() -> None:
    trouble = Trouble(cluster="backup", why="gone", since_ms=1)
    answer = Answer(got=ClustersStory(source=WELL, target=replace(WELL, alias="backup")), at_ms=1)
    source, target = cards_of(FLOW, answer, (trouble,), 1)
    assert (source.badge.condition, source.is_past) == (Condition.GOOD, False)
    assert (target.badge.condition, target.is_past) == (Condition.BAD, True)
    assert [line.text for line in target.lines] == ["gone"]
    assert cards_of(FLOW, Answer(), (trouble,), 1)[1].badge.condition is Condition.BAD


def with_brokers(*brokers: BrokerFacts) -> ClusterStory:
    return replace(WELL, facts=ClusterFacts(alias="primary", cluster_id="x", brokers=brokers))


@pytest.mark.parametrize(
    ("story", "condition", "words"),
    [
        (WELL, Condition.GOOD, []),
        (with_brokers(UP, DEAD), Condition.WARN, ["no answer"]),
        (
            replace(WELL, health=replace(HEALTH, under_replicated=1, short=(SHORT,))),
            Condition.WARN,
            ["under-replicated"],
        ),
        (
            replace(with_brokers(UP, DEAD), health=replace(HEALTH, offline=1, short=(replace(SHORT, offline=True),))),
            Condition.BAD,
            ["no answer", "offline"],
        ),
        (replace(WELL, why="gone"), Condition.BAD, ["no answer"]),
        (replace(WELL, not_asked="no secret"), Condition.UNKNOWN, ["not asked"]),
        (replace(WELL, health=None, not_known="no topics."), Condition.GOOD, ["not known"]),
        (replace(WELL, steering=Steering(not_known=("a", "b"))), Condition.GOOD, ["not known", "not known"]),
    ],
)
def test_the_badge_is_the_worst_and_each_reason_is_a_line(
    story: ClusterStory, condition: Condition, words: list[str]
) -> None:
    found = card(story)
    assert found.badge.condition is condition
    assert [line.word for line in found.lines] == words


def test_nothing_is_known_before_the_first_answer() -> None:
    for answer in (Answer(), Answer(error="no reader", failed_ms=1)):
        for one in cards_of(FLOW, answer, (), 1):
            assert (one.badge.condition, one.brokers, one.version, one.controller) == (Condition.UNKNOWN, (), "", "")
            assert [line.text for line in one.lines] == ([answer.error] if answer.error else [])


def test_versions_of_a_rolling_upgrade_are_both_shown_and_a_controller_apart_is_a_node() -> None:
    newer = replace(UP, id=2, version=(4, 2))
    assert card(with_brokers(newer, UP)).version == "4.1 to 4.2"
    assert card(WELL).controller == "broker 1"
    assert card(replace(WELL, steering=Steering(controller=3000))).controller == "node 3000"


def test_of_very_many_brokers_those_that_do_not_answer_are_listed_first() -> None:
    many = (*(replace(UP, id=number) for number in range(2 * MOST_BROKERS)), replace(DEAD, id=999))
    found = card(with_brokers(*many))
    assert found.brokers[0].facts.id == 999
    assert (len(found.brokers), found.more_brokers) == (MOST_BROKERS, MOST_BROKERS + 1)
    dead = card(with_brokers(*(replace(DEAD, id=number) for number in range(2 * MOST_SHOWN))))
    assert len(dead.lines) == MOST_SHOWN + 1


def test_the_overview_shows_both_clusters_and_does_not_wait_for_them(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}))
    waiting = desk.page(f"{HERE}/")
    assert waiting.count('class="card cluster"') == waiting.count("data-waiting") == 2
    assert [job.what for job in desk.watcher.jobs] == ["clusters"]
    filled(desk)
    page = desk.page(f"{HERE}/")
    assert page.count('class="card cluster"') == 2
    assert "data-waiting" not in page
    for shown in ("5L6g3nShT-eMCtK--X86sw", "node 3000", "metadata.version 4.1 (level 27)", "eu-west-1b"):
        assert shown in page


def test_the_card_of_a_cluster_in_trouble_shows_its_figures_as_earlier_ones(desk: Desk) -> None:
    filled(desk)
    desk.watcher.see(FlowPoll(view=None, lags=None, troubles={"primary": "gone"}))
    page = desk.page(f"{HERE}/")
    source = page.partition('id="cluster:primary"')[2].partition('id="cluster:backup"')[0]
    assert "last answered" in source
    assert "was active" in source or "not known" in source
    assert 'class="badge good"' not in source
