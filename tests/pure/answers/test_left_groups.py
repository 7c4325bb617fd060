"""Groups that the operator leaves (`--leave-group`, `--leave-active`): evidence claims nothing else of them."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.features.groups.rules.outside import OutsideGroup, why_hidden, with_known
from tests.golden import Golden
from tests.pure.answers.stories import begun
from tests.pure.answers.world import FILE, Answer, World

pytestmark = pytest.mark.slow
FAIL = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-reverse", "--no-smoke"


@pytest.mark.parametrize("is_lost", [False, True], ids=["the source answers", "the source is lost"])
def test_a_group_that_is_left_is_in_the_report_and_what_it_reads_twice_is_not_known(made: World, is_lost: bool) -> None:
    begun(made, "b->a.enabled = true", topics={"users": 1})
    for group in ("billing", "billing-night"):
        made.commit(made.a, group, users_0=2)
    made.ask("run", "a->b", "--id", "r1")
    made.lost = made.a if is_lost else None
    answer = made.ask(*FAIL, "--leave-group", "billing-night", "--leave-group", "nowhere")
    assert answer.code == 0, answer.out + answer.err
    (groups,) = [step for step in answer.body["steps"] if step["step"] == "groups"]
    assert {row["group"]: row["outcome"] for row in groups["rows"]} == {"billing": "moved", "billing-night": "left"}
    assert ", 1 left" in groups["sentence"]
    body = made.ask("reports", "switch", "a->b", "f-1").body
    found = {one["group"]: one for one in body["groups"]}
    assert found.keys() == {"billing", "billing-night"}
    assert found["billing-night"]["reread"] is None
    assert "--leave-group" in found["billing-night"]["note"]
    assert {one["name"]: one["measured"] for one in body["goals"]}["records read twice"] is None


OVER = "switchover", "a->b", "--id", "s-1", "--quiet-seconds", "0", "--approve-by", "bob"
REREAD = "records read twice"


@pytest.mark.parametrize("output", ["json", "table"])
@pytest.mark.parametrize("verb", ["switchover", "failover"])
def test_a_switch_shows_what_is_not_as_it_should_be_as_its_report_does(made: World, verb: str, output: str) -> None:
    outside(made, billing={"users_0": 4}, fraud={"users_0": 4})
    asked = OVER if verb == "switchover" else FAIL
    answer = made.ask(*asked, output=output)
    assert answer.code == 0, answer.err
    wanted = made.ask("reports", "switch", "a->b", asked[3]).body["deviations"]
    assert len(wanted) == 1
    if output == "json":
        assert answer.body["deviations"] == wanted
        return
    begins = [line.partition(": ")[0] for line in answer.out.splitlines()]
    assert f"deviation: {wanted[0]}" in answer.out.splitlines()
    assert begins.index("deviation") == len(begins) - 2, "right before the line that the switch is finished"


def outside(made: World, *lines: str, **offsets: dict[str, int]) -> None:
    """A flow that takes `billing.*`, with a run, and these groups at the source."""
    begun(made, "b->a.enabled = true", *lines, topics={"users": 1})
    for group, at in offsets.items():
        made.commit(made.a, group.replace("_", "-"), **at)
    made.ask("run", "a->b", "--id", "r1")


def measured(body: dict[str, Any]) -> int | None:
    """The goal of records that groups read twice; None: not known."""
    (goal,) = [one for one in body["goals"] if one["name"] == REREAD]
    found: int | None = goal["measured"]
    assert goal["met"] is (found == 0)
    return found


def test_groups_that_the_file_leaves_out_are_named_and_what_they_read_twice_is_not_known(made: World) -> None:
    outside(made, "groups = .*", "groups.exclude = connect-.*", fraud={"users_0": 4}, connect_sink={"users_0": 4})
    checks = {one["name"]: one for one in made.ask("readiness", "a->b").body["checks"]}
    assert checks["outside"]["ok"]
    assert "connect-sink" in checks["outside"]["message"]
    assert "groups.exclude" in checks["outside"]["message"]
    assert "fraud" not in checks["outside"]["message"]
    answer = made.ask(*OVER)
    assert answer.code == 0, answer.err
    steps = {one["step"]: one for one in answer.body["steps"]}
    rows = {row["group"]: row for row in steps["groups"]["rows"]}
    assert {name: (row["outcome"], row.get("outside")) for name, row in rows.items()} == {
        "fraud": ("moved", None),
        "connect-sink": ("left", "filter"),
    }
    assert rows["connect-sink"]["from"] == [["users", 0, 4]]
    assert (steps["groups"]["facts"]["left"], steps["groups"]["facts"]["outside_known"]) == (1, True)
    body = made.ask("reports", "switch", "a->b", "s-1").body
    assert measured(body) is None
    assert body["outcome"] == "deviations"
    assert {one["group"]: one["reread"] for one in body["groups"]} == {"fraud": 0, "connect-sink": None}
    (note,) = body["notes"]
    assert "connect-sink" in note


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        pytest.param({"users_0": 4}, ("--leave-group", "fraud"), id="left by name"),
        pytest.param({"users_0": 0}, (), id="nothing read"),
        pytest.param({"others_0": 4}, (), id="another topic"),
    ],
)
def test_a_group_outside_of_the_file_that_cannot_read_twice_or_that_is_left_by_name_misses_no_goal(
    made: World, offsets: dict[str, int], words: tuple[str, ...]
) -> None:
    made.a.topic("others", 1)
    outside(made, fraud=offsets)
    assert made.ask(*OVER, *words).code == 0
    body = made.ask("reports", "switch", "a->b", "s-1").body
    assert measured(body) == 0
    assert body["outcome"] == "success"
    assert bool(body["groups"]) is ("others_0" not in offsets)


def test_a_group_outside_of_the_file_that_reads_what_came_from_the_other_cluster_counts(made: World) -> None:
    outside(made)
    made.a.topic("b.users", 1)
    made.commit(made.a, "fraud", **{"b.users_0": 3})
    assert made.ask(*OVER).code == 0
    body = made.ask("reports", "switch", "a->b", "s-1").body
    assert measured(body) is None
    assert [one["group"] for one in body["groups"]] == ["fraud"]


def test_of_a_source_that_is_lost_groups_outside_of_the_file_are_those_of_the_ledger(made: World) -> None:
    outside(made, billing={"users_0": 4}, billing_night={"users_0": 4})
    text = (made.folder / FILE).read_text()
    (made.folder / FILE).write_text(text + "groups.exclude = billing-night\n")
    made.lost = made.a
    answer = made.ask(*FAIL)
    assert answer.code == 0, answer.err
    (groups,) = [step for step in answer.body["steps"] if step["step"] == "groups"]
    rows = {row["group"]: row for row in groups["rows"]}
    assert {name: row["outcome"] for name, row in rows.items()} == {"billing": "moved", "billing-night": "left"}
    assert rows["billing-night"]["from"] == [["users", 0, 4]]
    assert groups["facts"]["outside_known"] is False
    body = made.ask("reports", "switch", "a->b", "f-1").body
    assert measured(body) is None
    assert any("billing-night" in note for note in body["notes"])
    assert any("not known" in note and "leaves out" in note for note in body["notes"])


def test_a_switch_is_not_held_up_by_members_of_a_group_that_the_file_leaves_out_and_names_it(made: World) -> None:
    outside(made, fraud={"users_0": 4}, night={"others_0": 4})
    made.a.active |= {"fraud", "night"}
    answer = made.ask(*OVER)
    assert answer.code == 0, answer.err
    steps = {one["step"]: one for one in answer.body["steps"]}
    assert steps["quiet"]["facts"]["outside_at_work"] == ["fraud"]
    (row,) = steps["groups"]["rows"]
    assert (row["group"], row["outcome"], row["outside"]) == ("fraud", "left", "filter")
    assert any("members" in note for note in row["notes"])


def test_a_shadow_drill_names_the_groups_that_no_switch_moves(made: World, golden: Golden) -> None:
    outside(made, billing={"users_0": 4}, fraud={"users_0": 4}, night={"others_0": 4})
    body = made.ask("drills", "shadow", "a->b", "--report", "reports").body
    assert [one["group"] for one in body["groups"]] == ["billing"]
    (note,) = [note for note in body["notes"] if "fraud" in note]
    golden(note)
    assert not any("night" in note for note in body["notes"])


def test_groups_that_the_login_may_not_see_are_not_known_in_any_evidence(made: World, golden: Golden) -> None:
    """A broker lists them to a login that may describe the cluster alone, and reports no error to others."""
    outside(made, billing={"users_0": 4}, fraud={"users_0": 4})
    made.a.active.add("fraud")
    made.a.seen = {"billing"}
    checks = {one["name"]: one for one in made.ask("readiness", "a->b").body["checks"]}
    assert (checks["outside"]["ok"], checks["outside"]["known"]) == (True, False)
    golden(checks["outside"]["message"], "readiness")
    assert checks["groups"]["known"]
    answer = made.ask(*OVER)
    assert answer.code == 0, answer.err
    steps = {one["step"]: one for one in answer.body["steps"]}
    for name in ("quiet", "groups"):
        assert steps[name]["facts"]["outside_known"] is False
        assert "not known" in steps[name]["sentence"]
    assert "grant DESCRIBE" in steps["groups"]["facts"]["hidden"]
    body = made.ask("reports", "switch", "a->b", "s-1").body
    (goal,) = [one for one in body["goals"] if one["name"] == REREAD]
    assert (goal["measured"], bool(goal["of"])) == (0, True)
    (note,) = body["notes"]
    golden(note, "the switch")


def test_a_shadow_drill_says_of_which_groups_its_figures_are(made: World, golden: Golden) -> None:
    outside(made, billing={"users_0": 4}, fraud={"users_0": 4})
    made.a.seen = {"billing"}
    body = made.ask("drills", "shadow", "a->b", "--report", "reports").body
    (note,) = [note for note in body["notes"] if "not known" in note]
    golden(note)
    assert [bool(one.get("of")) for one in body["goals"] if one["name"] == REREAD] == [True]


PARTIAL = "drills", "partial", "a->b", "--topic", "users", "--approve-by", "bob", "--report", "reports"
SHADOW = "drills", "shadow", "a->b", "--report", "reports"


@pytest.mark.parametrize("drill", [PARTIAL, SHADOW], ids=["partial", "shadow"])
@pytest.mark.parametrize("what", ["left out", "hidden", "silent", "one is silent"])
def test_the_summary_of_a_drill_does_not_contradict_its_notes(
    made: World, drill: tuple[str, ...], what: str, golden: Golden
) -> None:
    taken = {"billing": {"users_0": 4}} if "silent" in what else {}
    more = {"billing_night": {"users_0": 4}} if what == "one is silent" else {}
    outside(made, fraud={"users_0": 4}, **taken, **more)
    if what == "hidden":
        made.a.seen = set()
    if "silent" in what:
        made.a.hidden = {"billing"}
    golden(made.ask(*drill).body["summary"])


@pytest.mark.parametrize(("sees_all", "is_hidden"), [(True, False), (False, True), (None, True)])
def test_only_a_login_that_sees_all_groups_knows_that_there_is_no_other(sees_all: bool | None, is_hidden: bool) -> None:
    assert bool(why_hidden("a", sees_all)) is is_hidden


def test_readiness_lists_the_groups_of_the_source_once(made: World) -> None:
    outside(made, billing={"users_0": 4}, fraud={"users_0": 4})
    before = made.a.count("ListGroups")
    made.ask("readiness", "a->b")
    assert made.a.count("ListGroups") - before == 1


@pytest.mark.parametrize("verb", [OVER, FAIL], ids=["switchover", "failover"])
def test_what_the_ledger_knows_of_groups_that_are_not_listed_stays_known(made: World, verb: tuple[str, ...]) -> None:
    """One that the file takes is asked for by name, and one that it leaves out is named with the ledger's offsets."""
    outside(made, billing={"users_0": 4}, billing_night={"users_0": 4}, fraud={"users_0": 4})
    text = (made.folder / FILE).read_text()
    (made.folder / FILE).write_text(text + "groups.exclude = billing-night\n")
    made.a.seen = {"fraud"}
    answer = made.ask(*verb)
    assert answer.code == 0, answer.err
    (groups,) = [step for step in answer.body["steps"] if step["step"] == "groups"]
    rows = {row["group"]: (row["outcome"], row["from"]) for row in groups["rows"]}
    assert rows == {
        "billing": ("moved", [["users", 0, 4]]),
        "billing-night": ("left", [["users", 0, 4]]),
        "fraud": ("left", [["users", 0, 4]]),
    }


@pytest.mark.parametrize("verb", [OVER, FAIL], ids=["switchover", "failover"])
def test_groups_with_members_on_the_old_cluster_are_left_if_that_is_asked_for(
    made: World, verb: tuple[str, ...]
) -> None:
    outside(made, billing={"users_0": 4}, billing_night={"users_0": 4})
    before = made.b.groups["billing"]
    made.commit(made.a, "billing", users_0=8)
    made.a.active.add("billing")
    assert moved_of(made.ask(*verb, "--leave-active")) == ({"billing": "left", "billing-night": "moved"}, [])
    assert made.b.groups["billing"] == before


def test_a_failover_moves_groups_with_members_on_the_old_cluster_otherwise(made: World) -> None:
    outside(made, billing={"users_0": 4})
    made.a.active.add("billing")
    answer = made.ask(*FAIL)
    assert moved_of(answer) == ({"billing": "moved"}, None)


def test_of_a_lost_cluster_it_is_not_known_which_groups_have_members(made: World, golden: Golden) -> None:
    outside(made, billing={"users_0": 4})
    made.a.active.add("billing")
    made.lost = made.a
    answer = made.ask(*FAIL, "--leave-active")
    assert moved_of(answer) == ({"billing": "moved"}, ["billing"])
    golden(next(step["sentence"] for step in answer.body["steps"] if step["step"] == "groups"))


def test_of_a_broker_that_lists_no_groups_it_is_not_known_which_have_members(made: World) -> None:
    outside(made, billing={"users_0": 4}, billing_night={"users_0": 4}, billing_day={"users_0": 4})
    made.a.active |= {"billing", "billing-day"}
    made.a.seen = {"billing", "billing-night"}
    wanted = {"billing": "left", "billing-night": "moved", "billing-day": "moved"}
    assert moved_of(made.ask(*FAIL, "--leave-active")) == (wanted, ["billing-day"])


def moved_of(answer: Answer) -> tuple[dict[str, str], list[str] | None]:
    """The groups' outcomes, and those of which it is not known whether they have members on the old cluster."""
    assert answer.code == 0, answer.err
    (groups,) = [step for step in answer.body["steps"] if step["step"] == "groups"]
    unknown = groups["facts"].get("members_unknown")
    return {row["group"]: row["outcome"] for row in groups["rows"]}, unknown


@pytest.mark.parametrize(("is_whole", "found"), [(True, ["new"]), (False, ["lost", "new"])])
def test_a_list_in_part_leaves_groups_open_that_were_known(is_whole: bool, found: list[str]) -> None:
    """One broker that does not answer lists nothing; a group that is listed has no offsets any more."""
    new, lost, gone = (OutsideGroup(group=name, why="", offsets={}) for name in ("new", "lost", "gone"))
    assert [one.group for one in with_known([new], [lost, gone], ["new", "gone"], is_whole=is_whole)] == found
