"""A flow that a switch has paused: an operator cannot replace that pause, and clients are where the switches say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.ledger.codec import pause_record
from ferry.model import Pause
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world

pytestmark = pytest.mark.slow
SWITCH = "--approve-by", "bob", "--no-smoke"
PLANNED = *SWITCH, "--quiet-seconds", "0"
WHY = "outage 4711"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Clients are on b since the failover f-1, and the flow back has run."""
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        assert made.ask("failover", "a->b", "--id", "f-1", *SWITCH, "--leave-unknown").code == 0
        made.produce(made.b, "users", 0, 3)
        assert made.ask("run", "b->a", "--id", "r2").code == 0
        yield made


def replaced(made: World) -> None:
    """An earlier Ferry has replaced the pause of the switch by an operator's."""
    records = [pause_record(Pause(topic="", who="ann@desk-7", why=WHY, since_ms=made.now_ms))]
    made.b.append(ledger_topic("a"), build_batch(records, made.now_ms, ProducerIdentity()), 0)


def pauses(made: World) -> list[tuple[str, int | None]]:
    """Why the flow is paused, and until when."""
    return [(one["why"], one["until_ms"]) for one in made.ask("ledger", "a->b", "--pauses").body["pauses"]]


def code_of(answer: Answer) -> tuple[int, str]:
    return answer.code, answer.body["error"]["code"]


@pytest.mark.parametrize("more", [(), ("--until", "2100-01-01T00:00:00Z"), ("--dry-run",)], ids=str)
def test_the_pause_of_a_switch_is_not_replaced(made: World, more: tuple[str, ...]) -> None:
    before = pauses(made)
    refused = made.ask("pause", "a->b", "--reason", WHY, *more)
    assert code_of(refused) == (2, "pause.of-switch")
    facts = refused.body["error"]["facts"]
    assert (facts["flow"], facts["verb"], facts["switch"]) == ("a->b", "failover", "f-1")
    assert pauses(made) == before == [("f-1: failover to b", None)]


def test_topics_of_a_standby_and_the_flow_back_can_be_paused(made: World) -> None:
    assert made.ask("pause", "a->b", "--reason", WHY, "--topic", "users").code == 0
    assert made.ask("pause", "b->a", "--reason", WHY).code == 0


@pytest.mark.parametrize("more", [("--dry-run",), ()], ids=["shown", "done"])
def test_who_resumes_a_standby_is_shown_the_switch_that_paused_it(made: World, more: tuple[str, ...]) -> None:
    resumed = made.ask("resume", "a->b", *more)
    assert (resumed.code, resumed.body["was_paused"], resumed.body["switch"]) == (0, True, "f-1")
    assert resumed.err.count("warning") == 1
    assert "f-1" in resumed.err
    assert bool(pauses(made)) == bool(more)


def test_a_standby_that_was_resumed_can_be_paused(made: World) -> None:
    assert made.ask("resume", "a->b").code == 0
    assert made.ask("pause", "a->b", "--reason", WHY).code == 0
    assert pauses(made) == [(WHY, None)]
    resumed = made.ask("resume", "a->b")
    assert (resumed.body["was_paused"], resumed.body["switch"], resumed.err) == (True, None, "")


@pytest.mark.parametrize("resumed", [False, True])
def test_a_failback_follows_the_switches_whatever_the_pause_says(made: World, resumed: bool) -> None:
    replaced(made)
    if resumed:
        made.ask("resume", "a->b")
    back = made.ask("failback", "a->b", "--id", "s-2", *PLANNED)
    assert back.code == 0, back
    assert pauses(made) == [], "the failback has started the flow again"
    assert code_of(made.ask("failback", "a->b", "--id", "s-3", "--dry-run")) == (2, "switch.nothing-to-return")


def test_clients_are_not_moved_twice_whatever_the_pause_says(made: World) -> None:
    replaced(made)
    refused = made.ask("switchover", "a->b", "--id", "s-2", "--dry-run")
    assert (refused.code, refused.body["error"]["kind"]) == (2, "refused")
    assert "ferry failback 'a->b'" in refused.body["error"]["message"]


def test_a_standby_that_was_resumed_can_be_switched_along_again(made: World) -> None:
    made.ask("resume", "a->b")
    assert made.ask("run", "a->b", "--id", "r3").code == 0
    assert made.ask("switchover", "a->b", "--id", "s-2", "--dry-run").code == 0


def test_a_flow_that_was_started_again_and_paused_can_be_failed_over(made: World) -> None:
    assert made.ask("failback", "a->b", "--id", "s-2", *PLANNED).code == 0
    assert made.ask("run", "a->b", "--id", "r3").code == 0
    assert made.ask("pause", "a->b", "--reason", WHY).code == 0
    made.lost = made.a
    assert made.ask("failover", "a->b", "--id", "f-3", *SWITCH).code == 0


def test_a_flow_that_was_left_by_an_opposite_switch_is_started_by_its_failback(made: World) -> None:
    assert made.ask("failover", "b->a", "--id", "f-2", *SWITCH, "--leave-unknown", "--no-reverse").code == 0
    assert code_of(made.ask("failback", "a->b", "--id", "s-3", "--dry-run")) == (2, "switch.nothing-to-return")
    refused = made.ask("switchover", "a->b", "--id", "s-3", "--dry-run")
    assert "ferry failback 'b->a'" in refused.body["error"]["message"]
    assert made.ask("failback", "b->a", "--id", "s-3", *PLANNED).code == 0
