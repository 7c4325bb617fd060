"""A topic that the login may not see is refused by its name: it is not gone, and the other topics are copied."""

from __future__ import annotations

import pytest

from ferry.features.observe.acts.textfile import parse
from ferry.features.observe.rules import samples as m
from ferry.kafka.connect import codes
from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World
from tests.pure.scripted.faults import At, Fault

pytestmark = pytest.mark.slow
HIDDEN = "not-authorized"


def refusals(answer: Answer) -> list[tuple[str, str, str]]:
    """What was refused: topic, kind and code."""
    return [(one["topic"], one["kind"], one["code"]) for one in answer.body["refusals"]]


def lags(answer: Answer) -> list[tuple[str, int | None]]:
    """What of each partition is not copied yet: topic and records."""
    return [(one["topic"], one["lag_records"]) for one in answer.body["partitions"]]


def end_of(made: World, topic: str) -> int:
    """How many records a copy has."""
    return len(list(made.b.target.logs[f"{topic}-0"].committed()))


def test_a_topic_that_the_flow_no_longer_takes_may_be_hidden(made: World) -> None:
    begun(made, topics={"orders": 1, "old": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.write("topics = orders", "emit.heartbeats.enabled = false")
    made.produce(made.a, "orders", 0, 5)
    made.b.hidden = {"a.old"}
    assert made.ask("plan", "a->b").code == 0
    assert refusals(made.ask("run", "a->b", "--id", "r2")) == []
    assert end_of(made, "a.orders") == made.a.log("orders", 0).end


@pytest.mark.parametrize("topics", [("payments",), ("orders", "payments")])
def test_the_lag_of_a_hidden_topic_is_not_known(made: World, topics: tuple[str, ...]) -> None:
    lines = (f"topics = {', '.join(topics)}", "emit.heartbeats.enabled = false", "ferry.schedule = @hourly")
    begun(made, *lines, f"ferry.metrics.folder = {made.folder}", topics={"orders": 1})
    made.a.hidden = {"payments"}
    assert refusals(made.ask("run", "a->b", "--id", "r1")) == [("payments", HIDDEN, "source.hidden")]
    answer = made.ask("lag", "a->b", "--rpo-seconds", "1", "--rpo-records", "0")
    assert (answer.code, lags(answer)) == (1, [("orders", 0), ("payments", None)][-len(topics) :])
    assert answer.body["total"]["unknown"] == 1
    values = parse((made.folder / "ferry__a__b.prom").read_text())
    unknown = {dict(at)["topic"]: value for (name, at), value in values.items() if name == m.LAG_UNKNOWN.name}
    assert unknown == {"a.orders": 0, "a.payments": 1} if len(topics) > 1 else {"a.payments": 1}
    assert (m.LAG_MOST_RECORDS.name in {name for name, _ in values}) is (len(topics) > 1)


@pytest.mark.parametrize("guard", ["fail", "skip"])
def test_the_lag_of_a_copied_topic_that_is_hidden_is_not_known(made: World, guard: str) -> None:
    """It is not gone, so what the file says of topics that are gone does not make it up to date."""
    begun(made, f"ferry.guard.topic.gone = {guard}", topics={"orders": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.a.hidden = {"orders"}
    answer = made.ask("lag", "a->b", "--rpo-records", "0")
    assert (answer.code, lags(answer)) == (1, [("orders", None)])


@pytest.mark.parametrize("guard", ["fail", "restart"])
def test_a_hidden_copy_is_not_gone(made: World, guard: str) -> None:
    begun(made, f"ferry.guard.target.changed = {guard}", topics={"orders": 1, "old": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    for topic in ("orders", "old"):
        made.produce(made.a, topic, 0, 2)
    made.b.hidden = {"a.old"}
    assert refusals(made.ask("run", "a->b", "--id", "r2")) == [("old", HIDDEN, "target.hidden")]
    assert end_of(made, "a.orders") == made.a.log("orders", 0).end
    made.b.hidden.clear()
    assert refusals(made.ask("run", "a->b", "--id", "r3")) == []
    assert end_of(made, "a.old") == made.a.log("old", 0).end


def test_a_copy_that_only_the_positions_hide_is_copied(made: World) -> None:
    """The permission was taken away, or came back, between two requests: the position is not known."""
    begun(made, topics={"orders": 1, "old": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.produce(made.a, "old", 0, 2)
    fault = Fault(
        api="OffsetFetch", topic="a.old", code=codes.TOPIC_AUTHORIZATION_FAILED, at=At.NAMED, key="ferry.a->b.live"
    )
    made.b.faults.append(fault)
    answer = made.ask("run", "a->b", "--id", "r2")
    assert (answer.code, refusals(answer), answer.body["notes"], fault.happened) == (0, [], [], 1)


@pytest.mark.parametrize(
    ("side", "topic", "code"), [("b", "a.old", "target.hidden"), ("a", "old", "source.hidden")], ids=["copy", "source"]
)
def test_a_topic_that_is_hidden_after_the_plan_is_not_gone(made: World, side: str, topic: str, code: str) -> None:
    begun(made, topics={"orders": 1, "old": 1})
    hidden = getattr(made, side).hidden
    made.b.faults.append(Fault(api="InitProducerId", key="ferry.a->b.live.0", skip=1, then=lambda: hidden.add(topic)))
    assert refusals(made.ask("run", "a->b", "--id", "r1")) == [("old", HIDDEN, code)]
    assert end_of(made, "a.orders") == made.a.log("orders", 0).end
    hidden.clear()
    assert refusals(made.ask("run", "a->b", "--id", "r2")) == []
    assert end_of(made, "a.old") == made.a.log("old", 0).end


def test_a_new_copy_that_is_hidden_once_created_has_its_leaders(made: World) -> None:
    begun(made, topics={"orders": 1, "old": 1})
    made.b.faults.append(Fault(api="CreateTopics", then=lambda: made.b.hidden.add("a.old")))
    assert refusals(made.ask("run", "a->b", "--id", "r1")) == [("old", HIDDEN, "target.hidden")]
    assert end_of(made, "a.orders") == made.a.log("orders", 0).end


@pytest.mark.parametrize(("side", "topic"), [("b", "a.old"), ("a", "old")], ids=["copy", "source"])
def test_a_hidden_topic_is_not_compared_and_not_called_gone(made: World, side: str, topic: str) -> None:
    begun(made, topics={"orders": 1, "old": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    getattr(made, side).hidden = {topic}
    said = made.ask("verify", "a->b")
    assert said.code != 0
    assert {one["kind"] for one in said.body["not_compared"]} == {"unreadable"}, said.body
    assert all(topic in one["message"] for one in said.body["not_compared"])


def test_a_target_with_a_hidden_copy_is_not_ready(made: World) -> None:
    begun(made, topics={"orders": 1, "old": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    made.b.hidden = {"a.old"}
    shown = made.ask("failover", "a->b", "--no-reverse", "--dry-run")
    (check,) = (one for one in shown.body["readiness"]["checks"] if one["name"] == "target")
    assert not check["ok"]
    assert "a.old" in check["message"]
