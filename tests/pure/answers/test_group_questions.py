"""`ferry groups` and `ferry translate` say of a group's offsets what a sync writes, and name what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.kafka.connect import codes
from ferry.protocol.names import ledger_topic
from tests.pure.answers.stories import HEARTBEATS, IDENTITY, begun
from tests.pure.answers.world import World
from tests.pure.scripted.faults import At, Fault


def shown(made: World) -> dict[str, Any]:
    """What the partitions of the group's table have of the translation, by topic."""
    (table,) = made.ask("groups", "a->b").body["groups"]
    return {one["topic"]: one["translated"] for one in table["partitions"] if one["topic"] is not None}


def test_a_merged_topic_has_no_translation_for_a_group(made: World) -> None:
    begun(made, IDENTITY, "ferry.merge.topics = orders", topics={"orders": 1, "users": 1})
    made.commit(made.a, "billing", orders_0=4, users_0=5)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    found = shown(made)
    assert (found["orders"], found["users"]["offset"]) == (None, 5)
    answer = made.ask("groups", "a->b")
    (lacks,) = answer.body["not_shown"]
    assert (answer.code, lacks["group"], "ferry.merge.topics" in lacks["why"]) == (1, "billing", True)
    translated = made.ask("translate", "a->b", "--group", "billing")
    (troubled,) = translated.body["not_translated"]
    assert (translated.code, troubled["topic"], "ferry.merge.topics" in troubled["why"]) == (1, "orders", True)
    assert [one["source_topic"] for one in translated.body["partitions"]] == ["users"]
    assert made.ask("translate", "a->b", "orders", "0", "4").body["outcome"] == "exact", "of a record, not of a group"


@pytest.mark.slow
@pytest.mark.parametrize("has_copied", [True, False], ids=["both flows copied", "the flow itself never copied it"])
def test_what_came_from_the_other_cluster_leads_back_to_its_record_there(made: World, has_copied: bool) -> None:
    begun(made, IDENTITY, "ferry.guard.foreign.writer = skip", topics={"orders": 1, "users": 1})
    names = "orders, users" if has_copied else "users"
    lines = f"topics = {names}", "groups = billing.*", *HEARTBEATS, IDENTITY, "ferry.guard.foreign.writer = skip"
    made.write(*lines)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    if not has_copied:
        made.b.topic("orders", 1)
    made.produce(made.b, "orders", 0, 10)
    end = made.b.log("orders").end
    start = f"b->a.ferry.start = orders:0:{end - 10}"
    made.write(*lines, "topics = orders", "a->b.enabled = false", "b->a.enabled = true", start)
    assert made.ask("run", "b->a", "--id", "r2").code == 0
    made.write(*lines, "topics = orders, users")
    made.commit(made.a, "billing", orders_0=14)
    wanted = end - 10 + 4
    assert (shown(made)["orders"]["outcome"], shown(made)["orders"]["offset"]) == ("exact", wanted)
    assert made.ask("groups", "a->b").code == 0
    one = made.ask("translate", "a->b", "orders", "0", "14")
    assert (one.code, one.body["target_offset"]) == (0, wanted)
    (write,) = made.ask("groups", "sync", "a->b", "--dry-run").body["writes"]
    assert (write["outcome"], write["target_offset"]) == ("exact", wanted)


@pytest.mark.slow
@pytest.mark.parametrize("groups", ["billing", "billing.*"], ids=["by its name", "by a pattern"])
@pytest.mark.parametrize("words", [(), ("--group", "billing")], ids=["all", "one"])
def test_a_group_that_the_source_hides_is_not_called_absent(made: World, groups: str, words: tuple[str, ...]) -> None:
    begun(made, f"groups = {groups}", topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    del made.a.groups["billing"]  # a login without DESCRIBE on it is not given it in a list
    code = codes.GROUP_AUTHORIZATION_FAILED
    made.a.faults.append(Fault(api="OffsetFetch", code=code, at=At.LISTED, key="billing", times=10**6))
    answer = made.ask("groups", "a->b", *words)
    (lacks,) = answer.body["not_shown"]
    assert (answer.code, lacks["cluster"], lacks["group"]) == (1, "a", "billing")
    assert "DESCRIBE" in lacks["why"]
    (table,) = answer.body["groups"]
    assert (table["group"], table["source"], table["target"]["members"]) == ("billing", None, 0)


def test_where_the_ledger_is_hidden_too_groups_that_it_names_are_not_known(made: World) -> None:
    begun(made, "groups = billing.*", topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    del made.a.groups["billing"]
    made.b.hidden = {ledger_topic("a")}
    answer = made.ask("groups", "a->b")
    assert (answer.code, [one["cluster"] for one in answer.body["not_shown"]]) == (1, ["b"])


def test_a_group_that_is_on_neither_cluster_is_a_wrong_name(made: World) -> None:
    begun(made, "groups = billing, audit", topics={"users": 1})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    answer = made.ask("groups", "a->b")
    assert (answer.code, answer.body["not_shown"], answer.body["groups"]) == (0, [], [])
    answer = made.ask("groups", "a->b", "--group", "nowhere")
    assert (answer.code, [one["group"] for one in answer.body["not_shown"]]) == (1, ["nowhere"])
