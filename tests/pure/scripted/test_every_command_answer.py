"""Whatever commands are answered that delete, or ask of groups, transactions, ACLs and disks: what they say is true.

Each kind of request meets Kafka's error codes, before and after it was carried out, a lost answer, and a late one. The
command ends with what it did or with an error that is no fault of Ferry. Asked once more, it does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ferry.errors import FerryError
from ferry.kafka.connect import codes
from ferry.protocol.names import ledger_topic
from ferry.protocol.slot import SlotProgress
from tests.pure.answers.stories import HEARTBEATS, IDENTITY, begun
from tests.pure.answers.world import Answer, World, after, world, world_after
from tests.pure.identical.test_passing import Later
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.lane import at_work
from tests.pure.scripted.table import CODES, Case, Request, Table, each
from tests.pure.scripted.test_every_admin_answer import FEW
from tests.tiers import IN_PART

WINDOW = "backfill", "a->b", "--lane", "backfill-june", "--from-offset", "users:0:2", "--to-offset", "users:0:7"
DROP = "lanes", "drop", "a->b", "backfill-june", "--yes"
REBUILD = "ledger", "rebuild", "a->b", "--input", "out.jsonl"
RUN = "run", "a->b"
PLAN = "plan", "a->b"
DIFF = "acls", "diff", "a->b"
LAG = "lag", "a->b"
GONE = {codes.UNKNOWN_TOPIC_OR_PARTITION, codes.UNKNOWN_TOPIC_ID}
"""What says that there is nothing to delete."""
DECIDED = codes.UNAUTHORIZED | {
    codes.INVALID_REQUEST,
    codes.POLICY_VIOLATION,
    codes.SECURITY_DISABLED,
    codes.UNSUPPORTED_VERSION,
}
"""What says that no ACL was changed."""
ANN, BOB, CARL = "User:ann", "User:bob", "User:carl"
CHANGES = {(ANN, "delete"), (CARL, "create")}
LANE_GROUP = "ferry.a->b.backfill-june"
BEGINS = 20
"""Where the source's log begins that a copy with identical offsets begins at."""


def lane_begun(made: World) -> None:
    """A lane with a scratch topic."""
    begun(made, topics={"users": 1})
    assert made.ask(*WINDOW).code == 0
    made.b.groups[LANE_GROUP] = {}


def copied(made: World) -> None:
    """A flow that has copied all; a group reads the source."""
    begun(made, topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    assert made.ask(*RUN, "--id", "r1").code == 0
    made.a.active.add("billing")


def ledger_lost(made: World) -> None:
    """A ledger that was exported and deleted; the brokers know the flow's writers."""
    copied(made)
    assert made.ask("ledger", "export", "a->b", "--output", "out.jsonl").code == 0
    made.b.delete(ledger_topic("a"))


def source_held(made: World) -> None:
    """A source partition with more records, and then a transaction that has not ended."""
    copied(made)
    made.produce(made.a, "users", 0, 3)
    made.hold(made.a, "users", 0)


def target_held(made: World) -> None:
    """A copy to which somebody writes in a transaction that has not ended."""
    copied(made)
    made.produce(made.a, "users", 0, 3)
    made.hold(made.b, "a.users", 0)


def acls_changed(made: World) -> None:
    """Two ACLs are copied; then the source loses the first of them, and gets another one."""
    made.write("topics = users", *HEARTBEATS, "sync.topic.acls.interval.seconds = 1")
    made.a.topic("users")
    made.a.acls = reading("users", ANN, BOB)
    assert made.ask(*RUN, "--id", "r1").code == 0
    made.a.acls = reading("users", BOB, CARL)


def observed(made: World) -> None:
    """A flow with more to copy, a member of a newer group, a quota and a password, and a target without room."""
    made.restore(after(copied))
    made.a.modern, made.a.quotas, made.a.scram = {"billing"}, ["ann"], ["ann"]
    made.produce(made.a, "users", 0, 3)
    made.a.seen = {"billing"}
    made.write("topics = users", "groups = billing.*", *HEARTBEATS, "ferry.target.free.percent = 95")


def reading(topic: str, *principals: str) -> list[Mapping[str, Any]]:
    """ACLs that allow to read a topic, by the names of Kafka's protocol."""
    acl = {"resource_type": 2, "resource_name": topic, "pattern_type": 3, "operation": 3}
    return [{**acl, "principal": one} for one in principals]


def is_dropped(made: World, said: Answer) -> bool:
    """Whether the lane's topics and its group are gone."""
    return not said.code and not any("backfill-june" in name for name in (*made.b.ids, *made.b.groups))


def is_rebuilt(made: World, said: Answer) -> bool:
    """Whether the ledger is there again, with its run."""
    return not said.code and [one["run"] for one in made.ask("ledger", "a->b", "--runs").body["runs"]] == ["r1"]


def says_members(made: World, said: Answer) -> bool:
    """Whether the answer has the group's member, or says that members are not known."""
    (group,) = said.body["groups"]
    known = group["source"]["members"]
    return known == 1 or (known is None and bool(said.body["not_shown"]))


def copies_up_to_it(made: World, said: Answer) -> bool:
    """Whether all before the transaction is copied, and nothing of it."""
    return not said.code and len(list(made.b.log("a.users").committed())) == 13


def is_refused(made: World, said: Answer) -> bool:
    """Whether the partition is refused, and nothing is copied to it."""
    refused = [(one["topic"], one["partition"]) for one in said.body["refusals"]]
    return bool(said.code) and refused == [("users", 0)] and not said.body["receipts"]


def changes_acls(made: World, said: Answer) -> bool:
    """Whether the run claims only what is so, and the next one does the rest."""
    there = _readers(made)
    for one in said.body["acls"]:
        assert (one["principal"] in there) == (one["kind"] == "create"), "no change is claimed that was not made"
    assert there == {BOB, CARL} or said.body["notes"], "what is missing is said"
    return there == {BOB, CARL} or (not made.ask(*RUN).code and _readers(made) == {BOB, CARL})


def makes_acls(made: World, said: Answer) -> bool:
    """Whether ACLs are changed; one that was in doubt is Ferry's, which deletes it once the source has lost its ACL."""
    assert changes_acls(made, said)
    if not said.body["notes"]:
        return True
    made.a.acls = reading("users", BOB)
    return shown(made.ask(*DIFF), "changes") == {(CARL, "delete")}


def shown(said: Answer, name: str) -> set[tuple[str, str]]:
    """The changes of ACLs in an answer: principal and kind."""
    return {(one["principal"], one["kind"]) for one in said.body[name]}


def _readers(made: World) -> set[str]:
    return {one["principal"] for one in made.b.acls if one["resource_name"] == "a.users"}


def shows_changes(made: World, said: Answer) -> bool:
    """Whether the answer has both changes of ACLs."""
    return shown(said, "changes") == CHANGES


def plans_changes(made: World, said: Answer) -> bool:
    """Whether the plan has both changes of ACLs, or says why not; the next one has them."""
    return shown(said, "acls") == CHANGES or (said.body["notes"] and shown(made.ask(*PLAN), "acls") == CHANGES)


def counts_it(what: str, made: World, said: Answer) -> bool:
    """Whether the plan counts one that is not copied, or says that the number is not known; the next one counts."""

    def counted(said: Answer) -> int | None:
        count: int | None = next(one["count"] for one in said.body["not_copied"] if one["what"] == what)
        return count

    return counted(said) == 1 or (counted(said) is None and counted(made.ask(*PLAN)) == 1)


def has_no_room(made: World, said: Answer) -> bool:
    """Whether the plan refuses what does not fit, or says that the room is not known; the next one refuses."""

    def refused(said: Answer) -> bool:
        return [one["kind"] for one in said.body["refusals"]] == ["no-space"]

    not_known = [one["code"] for one in said.body.get("noted", ())] == ["space.not-known"]
    return refused(said) or (not_known and refused(made.ask(*PLAN)))


def knows_bytes(made: World, said: Answer) -> bool:
    """Whether the lag in bytes is of the log's size, or of the last receipt; the next one is of the log's size."""

    def lag(said: Answer) -> tuple[str, int]:
        (part,) = said.body["partitions"]
        return part["lag_bytes_from"], part["lag_bytes"]

    by_size = "log-size", 85
    return lag(said) == by_size or (lag(said) == ("last-receipt", 75) and lag(made.ask(*LAG)) == by_size)


def warns_of_groups(made: World, said: Answer) -> bool:
    """Whether it is said that there may be groups which the source does not list."""
    return [one["known"] for one in said.body["checks"] if one["name"] == "outside"] == [False]


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is asked, after what, and whether it is done. `writes`: it matters whether the request was carried out.

    `never`: codes that brokers answer only before they carry it out, or not at all.
    """

    before: Callable[[World], None]
    ask: tuple[str, ...]
    fault: Fault
    done: Callable[[World, Answer], bool]
    side: str = "b"
    writes: bool = False
    never: frozenset[int] = frozenset()


COMMANDS = {
    "topic's deletion": Command(
        before=lane_begun, ask=DROP, fault=Fault(api="DeleteTopics"), done=is_dropped, writes=True
    ),
    "known writers": Command(before=ledger_lost, ask=REBUILD, fault=Fault(api="ListTransactions"), done=is_rebuilt),
    "members": Command(
        before=copied, ask=("groups", "a->b"), fault=Fault(api="DescribeGroups"), done=says_members, side="a"
    ),
    "source's transactions": Command(
        before=source_held, ask=RUN, fault=Fault(api="DescribeProducers"), done=copies_up_to_it, side="a"
    ),
    "target's transactions": Command(
        before=target_held, ask=RUN, fault=Fault(api="DescribeProducers"), done=is_refused
    ),
    "their writers": Command(before=target_held, ask=RUN, fault=Fault(api="ListTransactions"), done=is_refused),
    "group's deletion": Command(
        before=lane_begun,
        ask=DROP,
        fault=Fault(api="DeleteGroups"),
        done=is_dropped,
        writes=True,
        never=frozenset({codes.GROUP_ID_NOT_FOUND}),
    ),
    "new ACLs": Command(
        before=acls_changed,
        ask=RUN,
        fault=Fault(api="CreateAcls"),
        done=makes_acls,
        writes=True,
        never=DECIDED,
    ),
    "ACLs' deletion": Command(
        before=acls_changed, ask=RUN, fault=Fault(api="DeleteAcls"), done=changes_acls, writes=True
    ),
    "source's ACLs": Command(
        before=acls_changed, ask=DIFF, fault=Fault(api="DescribeAcls"), done=shows_changes, side="a"
    ),
    "target's ACLs": Command(before=acls_changed, ask=DIFF, fault=Fault(api="DescribeAcls"), done=shows_changes),
    "permission to change ACLs": Command(
        before=acls_changed, ask=PLAN, fault=Fault(api="DescribeCluster"), done=plans_changes
    ),
    "permission to see groups": Command(
        before=observed, ask=("readiness", "a->b"), fault=Fault(api="DescribeCluster"), done=warns_of_groups, side="a"
    ),
    "members of newer groups": Command(
        before=observed,
        ask=("groups", "a->b"),
        fault=Fault(api="ConsumerGroupDescribe"),
        done=says_members,
        side="a",
    ),
    "client quotas": Command(
        before=observed,
        ask=PLAN,
        fault=Fault(api="DescribeClientQuotas", at=At.OUTER),
        done=partial(counts_it, "client-quotas"),
        side="a",
    ),
    "SCRAM users": Command(
        before=observed,
        ask=PLAN,
        fault=Fault(api="DescribeUserScramCredentials", at=At.OUTER),
        done=partial(counts_it, "scram-users"),
        side="a",
    ),
    "sizes of logs": Command(
        before=observed,
        ask=LAG,
        fault=Fault(api="DescribeLogDirs", at=At.OUTER),
        done=knows_bytes,
        side="a",
    ),
    "room on disks": Command(
        before=observed, ask=PLAN, fault=Fault(api="DescribeLogDirs", at=At.LISTED), done=has_no_room
    ),
}


def judge(one: Command, _version: int, _side: str, fault: Fault) -> None:
    """The command with this fault says what is true, and without it does what is left."""
    print(f"{one.side}: {fault}")
    with world_after(one.before) as made:
        brokers = getattr(made, one.side)
        brokers.faults.append(fault)
        said = made.ask(*one.ask)
        assert fault.happened, "the command made no such request"
        brokers.faults.clear()
        if "error" in said.body:
            assert said.code
            assert said.body["error"]["kind"] != "bug", "an answer of a broker is no fault of Ferry"
            said = made.ask(*one.ask)
        assert one.done(made, said)


def judge_deletion(_version: int, _side: str, fault: Fault) -> None:
    """A copy with identical offsets deletes what the source has deleted; with this fault it claims nothing false."""
    print(fault)
    lane = Later([[3, 2], [4]], BEGINS)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(fault)
        result, error = SlotProgress(), None
        try:
            lane.copy(attempt, result=result)
        except FerryError as raised:
            error = raised
        assert fault.happened, "the copy made no such request"
        lane.target.faults.clear()
        assert lane.is_right(BEGINS) or result.refusals or error is not None, "what is missing is named"
        if not lane.is_right(BEGINS):
            lane.copy(lane.begin(lane.open("again")))
        assert lane.is_right(BEGINS)


def of_command(one: Command) -> Request:
    """A request of a command."""
    return Request(
        judge=partial(judge, one),
        fault=one.fault,
        writes=one.writes,
        codes=(FEW if IN_PART else CODES) - GONE - one.never,
        versions=(2,),
        lost=(1, 3) if IN_PART else (1, 3, 99),
    )


TABLE = Table(
    {name: of_command(one) for name, one in COMMANDS.items()}
    | {
        "deletion of records": Request(
            judge=judge_deletion, fault=Fault(api="DeleteRecords"), writes=True, versions=(2,), lost=(1, 3, 99)
        )
    }
)


def test_an_acl_that_a_lost_request_created_stays_ferrys_though_the_next_one_is_refused() -> None:
    with world_after(acls_changed) as made:
        made.b.faults += [
            Fault(api="CreateAcls", applied=True, lost=True),
            Fault(api="CreateAcls", code=codes.CLUSTER_AUTHORIZATION_FAILED),
        ]
        said = made.ask(*RUN)
        assert made.b.count("CreateAcls") == 2
        made.b.faults.clear()
        assert makes_acls(made, said)


@pytest.mark.slow
@each(TABLE.coded)
def test_an_error_code(case: Case) -> None:
    TABLE.judge(case)


@pytest.mark.slow
@each(TABLE.lost)
def test_no_answer(case: Case) -> None:
    TABLE.judge(case)


@pytest.mark.slow
@each(TABLE.late)
def test_a_late_answer(case: Case) -> None:
    TABLE.judge(case)


@pytest.mark.parametrize("mute", [False, True])
def test_a_consumer_that_still_runs_is_not_taken_over_whatever_brokers_list_of_it(mute: bool) -> None:
    """Brokers before 2.6 list no state of a group: members are asked for."""
    with TemporaryDirectory() as folder, world(Path(folder)) as made:
        begun(made, IDENTITY)
        made.b.topic("orders", 2)
        made.produce(made.b, "orders", 0, 8)
        made.produce(made.b, "orders", 1, 8)
        made.commit(made.a, "mirror", orders_0=8, orders_1=7)
        made.a.mute = mute
        adopt = "migrate", "mm1", "a->b", "--group", "mirror", "--topic", "orders"
        made.a.active.add("mirror")
        said = made.ask(*adopt)
        assert (said.code, "group mirror" in said.body["error"]["message"]) == (2, True), said
        made.a.faults.append(Fault(api="DescribeGroups", code=codes.GROUP_AUTHORIZATION_FAILED, times=99))
        assert made.ask(*adopt).code == 2
        made.a.faults.clear()
        made.a.active.clear()
        assert made.ask(*adopt).code == 0
