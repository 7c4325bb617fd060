"""Two switches in opposite directions, whose records lie in the ledgers of two clusters: one of them gives way."""

from __future__ import annotations

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.switch.acts import switcher as switches
from ferry.features.switch.acts.preflight import look_before
from ferry.features.switch.acts.switcher import Switcher
from ferry.model import Fact
from ferry.model.switch import STEPS, Step, SwitchState, Verb
from tests.harness import create_topic
from tests.kafka.run.switching import OPTIONS, PARTITIONS, Clients, Pair
from tests.said import data_of


@pytest.fixture
def pair(source_cluster: RunningCluster, target_cluster: RunningCluster, clients: Clients) -> Pair:
    """Both flows have run, and each of the clusters has a topic of its own that the other one has a copy of."""
    pair = Pair(here=source_cluster, there=target_cluster, topic=clients.topic, group=clients.group)
    for cluster in (source_cluster, target_cluster):
        create_topic(cluster, clients.topic, PARTITIONS)
        clients.produce(cluster, 4)
    pair.run(pair.flow)
    pair.run(pair.back)
    return pair


def upto(switcher: Switcher, switch: str, last: Step) -> SwitchState:
    """All steps up to that one."""
    for step in STEPS[switcher.verb]:
        state = switcher.step(switch, step)
        if step is last:
            return state
    raise AssertionError(f"no step {last}")


def not_ready(error: Refused) -> tuple[Fact, Fact, Fact]:
    """The check that keeps a switch from beginning, the code of its sentence, and the switch that it names."""
    code, facts = data_of(error)
    assert code == "switch.not-ready"
    return facts["check"], facts["of"], facts["switch"]


@pytest.mark.timeout(180)
def test_who_begins_second_is_refused_and_what_nobody_can_see_is_said(pair: Pair, impatient: None) -> None:
    with pair.switcher(Verb.SWITCHOVER) as there:
        there.open("there-1", OPTIONS, "bob")
        for verb in (Verb.SWITCHOVER, Verb.FAILOVER):
            with (
                pair.turned.switcher(verb) as back,
                pytest.raises(Refused) as refused,
            ):
                back.open("back-1", OPTIONS, "bob")
            assert not_ready(refused.value) == ("opposite", "switch.opposite", "there-1")
        with pair.turned.lost.switcher(Verb.FAILOVER) as back:
            back.open("back-1", OPTIONS, "bob")
            state = back.step("back-1", Step.READINESS)
        (check,) = [row for row in state.rows(Step.READINESS) if row["name"] == "opposite"]
        assert " is not known: " in check["message"]

        with pytest.raises(Refused) as refused:
            there.step("there-1", Step.READINESS)
        assert not_ready(refused.value) == ("opposite", "switch.opposite", "back-1")
        with pair.turned.switcher(Verb.FAILOVER) as back:
            back.abandon("back-1", "the other one was first")
        assert upto(there, "there-1", Step.PROMOTE).fact(Step.READINESS, "opposite") == ["back-1"]

        with pair.turned.lost.switcher(Verb.FAILOVER) as back:
            back.open("back-2", OPTIONS, "bob")
        with pytest.raises(Refused) as refused:
            there.step("there-1", Step.REDIRECT)
        code, facts = data_of(refused.value)
        assert (code, facts["switch"]) == ("switch.opposite", "back-2")
        with pair.turned.lost.switcher(Verb.FAILOVER) as back:
            assert back.run("back-2").end is not None
        with pytest.raises(Refused) as refused:
            there.step("there-1", Step.REDIRECT)
        code, facts = data_of(refused.value)
        moved = ("switch.opposite.moved", "back-2", pair.aliases[0])
        assert (code, facts["switch"], facts["cluster"]) == moved
        assert there.abandon("there-1", "back-2 has moved them").end is not None


def test_of_two_that_are_opened_at_once_one_gives_way(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    look = look_before

    with pair.switcher(Verb.SWITCHOVER) as there, pair.turned.switcher(Verb.SWITCHOVER) as back:

        def between(*given: object, **named: object) -> object:
            """The other one is opened behind this one's look, before its record."""
            monkeypatch.setattr(switches, "look_before", look)
            found = look(*given, **named)  # type: ignore[arg-type]
            back.open("back-1", OPTIONS, "eve")
            return found

        monkeypatch.setattr(switches, "look_before", between)
        with pytest.raises(Refused) as refused:
            there.open("there-1", OPTIONS, "bob")
        code, facts = data_of(refused.value)
        assert (code, facts["verb"], facts["switch"]) == ("switch.opposite.same-time", "switchover", "back-1")
        assert str(facts["who"]).startswith("ann@d")
        assert there.state("there-1").end is not None
        assert back.state("back-1").end is None, "who wrote first, and saw nobody, goes on"
        back.abandon("back-1", "not today")
