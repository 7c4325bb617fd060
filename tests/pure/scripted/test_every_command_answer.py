"""Whatever commands are answered that delete, or that ask brokers of groups and transactions: what they say is true.

Each kind of request meets Kafka's error codes, before and after it was carried out, a lost answer, and a late one. The
command ends with what it did or with an error that is no fault of Ferry. Asked once more, it does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ferry.errors import FerryError
from ferry.kafka.connect import codes
from ferry.protocol.names import ledger_topic
from ferry.protocol.slot import SlotResult
from tests.pure.answers.stories import IDENTITY, begun
from tests.pure.answers.world import Answer, World, world, world_after
from tests.pure.identical.test_passing import Later
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import at_work
from tests.pure.scripted.table import CODES, Case, Request, Table, each
from tests.pure.scripted.test_every_admin_answer import FEW
from tests.tiers import IN_PART

WINDOW = "backfill", "a->b", "--lane", "backfill-june", "--from-offset", "users:0:2", "--to-offset", "users:0:7"
DROP = "lanes", "drop", "a->b", "backfill-june", "--yes"
REBUILD = "ledger", "rebuild", "a->b", "--input", "out.jsonl"
RUN = "run", "a->b"
GONE = {codes.UNKNOWN_TOPIC_OR_PARTITION, codes.UNKNOWN_TOPIC_ID}
"""What says that there is nothing to delete."""
BEGINS = 20
"""Where the source's log begins that a copy with identical offsets begins at."""


def lane_begun(made: World) -> None:
    """A lane with a scratch topic."""
    begun(made, topics={"users": 1})
    assert made.ask(*WINDOW).code == 0


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


def is_dropped(made: World, said: Answer) -> bool:
    """Whether the lane's topics are gone."""
    return not said.code and not any("backfill-june" in name for name in made.b.ids)


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


@dataclass(frozen=True, kw_only=True)
class Command:
    """What is asked, after what, and whether it is done. `writes`: it matters whether the request was carried out."""

    before: Callable[[World], None]
    ask: tuple[str, ...]
    fault: Fault
    done: Callable[[World, Answer], bool]
    side: str = "b"
    writes: bool = False


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
        result, error = SlotResult(), None
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
        codes=(FEW if IN_PART else CODES) - GONE,
        versions=(2,),
        lost=(1, 3, 99),
    )


TABLE = Table(
    {name: of_command(one) for name, one in COMMANDS.items()}
    | {
        "deletion of records": Request(
            judge=judge_deletion, fault=Fault(api="DeleteRecords"), writes=True, versions=(2,), lost=(1, 3, 99)
        )
    }
)


@pytest.mark.timeout(120)  # in `make test-all` one case meets all codes
@each(TABLE.coded)
def test_an_error_code(case: Case) -> None:
    TABLE.judge(case)


@each(TABLE.lost)
def test_no_answer(case: Case) -> None:
    TABLE.judge(case)


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
