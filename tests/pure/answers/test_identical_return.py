"""Clients move along a flow with identical offsets and return, by the command line: at one numbering all the time."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.kafka.connect import codes
from ferry.model import Record, TopicPartition
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.answers.stories import HEARTBEATS, IDENTITY
from tests.pure.answers.world import Answer, World, world
from tests.pure.identical.test_slot import BROKER, SETTINGS
from tests.pure.scripted.batches import Part, identity, row
from tests.pure.scripted.faults import Asked, Fault
from tests.pure.scripted.whole import WholeBrokers

FLOWS = ("a->b", "b->a")
BOTH = tuple(f"{flow}.ferry.offsets{key}" for flow in FLOWS for key in (" = identical", ".may.lose = true"))
PASSING = tuple(f"{flow}.ferry.offsets.may.pass = true" for flow in FLOWS)
FILE = ("topics = orders", "groups = billing.*", "b->a.enabled = true", IDENTITY, *HEARTBEATS)
SWITCH = ("--approve-by", "ann", "--no-smoke")
PLANNED = (*SWITCH, "--quiet-seconds", "0")
OUT, BACK = ("switchover", "a->b", "--id", "out", *PLANNED), ("failback", "a->b", "--id", "back", *PLANNED)
EXPORTED = (*BACK, "--export", "stranded.jsonl")
STOPPED = 4
"""The exit code of a switch that stopped at a step."""
HOUR_MS = 3_600_000
COPIED = 10
"""How many records of the partition 0 are copied before clients move."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Both flows have identical offsets, and topics keep their names. The flow has run, and the flow back is paused."""
    with world(tmp_path) as found:
        found.write(*FILE, *BOTH)
        for one in (found.a, found.b):
            one.settings |= SETTINGS | BROKER
        found.a.topic("orders", 2)
        found.produce(found.a, "orders", 0, COPIED)
        found.produce(found.a, "orders", 1, 8)
        found.commit(found.a, "billing", orders_0=4, orders_1=6)
        done(found, "pause", "b->a", "--reason", "standby")
        done(found, "run", "a->b", "--id", "r1")
        yield found


def done(made: World, *words: str) -> Any:
    """What a command says that ends well."""
    answer = made.ask(*words)
    assert answer.code == 0, answer
    return answer.body


def stopped(answer: Answer, code: str) -> Any:
    """The facts of a switch that stopped for this reason."""
    error = answer.body["error"]
    assert (answer.code, error.get("code")) == (STOPPED, code), answer
    return error["facts"]


def not_started(made: World, place: str) -> Any:
    """The facts of the step `reverse` of a switchover that leaves the flow back to a failback, because of a place."""
    facts = step_of(done(made, *OUT), "reverse")["facts"]
    assert (facts["started"], place in facts["why"]) == (False, True)
    return facts


def step_of(body: Any, name: str) -> Any:
    """What a step of a switch found."""
    return next(one for one in body["steps"] if one["step"] == name)


def ends(made: World) -> tuple[int, int]:
    """Where the partition 0 ends on a and on b."""
    return made.a.log("orders", 0).end, made.b.log("orders", 0).end


def values(brokers: WholeBrokers, partition: int = 0) -> list[bytes | None]:
    """The values of a log, in order."""
    return [row(entry.payload)[2] for entry in brokers.log("orders", partition).entries]


def is_same(made: World) -> bool:
    """Whether both logs have the same records at the same offsets."""
    return all(values(made.a, number) == values(made.b, number) for number in (0, 1))


def batches_of(brokers: WholeBrokers) -> list[tuple[int, int, int]]:
    """Offset, producer id and sequence of each batch of the partition 0 that an idempotent producer wrote."""
    found = []
    for at, entry in enumerate(brokers.log("orders", 0).entries):
        if isinstance(entry.payload, Part) and entry.payload.index == 0:
            producer, _, sequence = identity(entry.payload.batch)
            found += [] if producer < 0 else [(at, producer, sequence)]
    return found


def continued_in(brokers: WholeBrokers, source: str) -> list[tuple[int, int, int]]:
    """Partition, offset and producer id of all records of where a lane continues, as the ledger got them."""
    rows = rows_of(brokers, source)
    ones = [(json.loads(key), json.loads(value or b"{}")) for _, key, value in rows if key.startswith(b'["continued"')]
    return [(key[3], value["at"], value["producer_id"]) for key, value in ones]


def rows_of(brokers: WholeBrokers, source: str) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The records that a ledger got."""
    return (row(one.payload) for one in brokers.log(ledger_topic(source)).entries if isinstance(one.payload, Part))


def when_promoted(made: World, act: Callable[[], object], switch: str = "out") -> None:
    """Do something between the steps `promote` and `reverse` of a move to b."""
    step = f'"{switch}","promote"'.encode()

    def is_promoted(_: Asked) -> bool:
        return any(step in key for _, key, _ in rows_of(made.b, "a"))

    made.b.faults.append(Fault(api="Produce", topic=ledger_topic("a"), only=is_promoted, skip=1, then=act))


def created_again(brokers: WholeBrokers) -> None:
    """The topic is deleted, and created again."""
    brokers.delete("orders")
    brokers.topic("orders", 2)
    brokers.ids["orders"] = uuid.UUID(int=7)


def another_last_record(brokers: WholeBrokers) -> None:
    """The log has another record at its last offset."""
    batch = build_batch([Record(key=b"k", value=b"other")], 1_800_000_000_000, ProducerIdentity())
    entries = brokers.log("orders", 0).entries
    entries[-1] = replace(entries[-1], payload=Part(batch, 0))


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((), id="no record may be empty"),
        pytest.param(PASSING, id="records may be empty", marks=pytest.mark.slow),
    ],
)
def test_clients_move_and_return_at_one_numbering_and_each_return_has_a_producer_id(
    made: World, lines: tuple[str, ...]
) -> None:
    made.write(*FILE, *BOTH, *lines)
    done(made, *OUT)
    made.produce(made.b, "orders", 0, 5)
    done(made, "run", "b->a")
    assert (ends(made), is_same(made)) == ((15, 15), True)
    done(made, *BACK)
    made.produce(made.a, "orders", 0, 5)
    for one in (made.a, made.b):
        one.asked.clear()
    done(made, "run", "a->b")
    assert (ends(made), is_same(made)) == ((20, 20), True)

    first, second = batches_of(made.b)
    (back,) = batches_of(made.a)
    assert [(at, sequence) for at, _, sequence in (first, back, second)] == [(0, 0), (10, 10), (15, 15)]
    assert first[1] != second[1], "the state of the first one wants its own next number"
    assert continued_in(made.b, "a")[0] == (0, 15, second[1])
    assert continued_in(made.a, "b")[0] == (0, 10, back[1])
    assert {at for number, at, _ in continued_in(made.a, "b") if number == 1} == {8}
    assert (made.a.count("DeleteRecords"), made.b.count("DeleteRecords")) == (0, 0)
    sent = [one for one in made.b.asked if one.api == "Produce" and "orders" in one.topics]
    assert len(sent) == 1, "the records alone, in one batch"


@pytest.mark.slow
def test_clients_move_twice_and_what_they_wrote_is_compared(made: World) -> None:
    for era in range(2):
        done(made, *OUT[:3], f"out-{era}", *PLANNED)
        made.produce(made.b, "orders", 0, 5)
        notes = done(made, "verify", "a->b")["notes"]
        assert [note for note in notes if "no receipt" in note or f"out-{era}" not in note] == []
        done(made, "run", "b->a")
        done(made, *BACK[:3], f"back-{era}", *PLANNED)
        made.produce(made.a, "orders", 0, 5)
        done(made, "run", "a->b")
    assert (ends(made), is_same(made)) == ((30, 30), True)
    assert len({producer for _, producer, _ in batches_of(made.b)}) == 3
    for flow in FLOWS:
        found = done(made, "verify", flow)
        assert (found["records"], found["identical"], found["not_compared"]) == (38, 38, []), flow
    assert done(made, "verify", "a->b")["notes"] == [], "no client is at its target now"
    made.change(made.b, "orders", 0)
    for flow in FLOWS:
        assert made.ask("verify", flow).code == 1


@pytest.mark.slow
def test_a_group_inside_of_what_clients_wrote_has_the_same_number_both_ways(made: World) -> None:
    place = TopicPartition("orders", 0)

    def at() -> tuple[int, int]:
        return made.a.groups["billing"][place][0], made.b.groups["billing"][place][0]

    done(made, *OUT)
    made.produce(made.b, "orders", 0, 5)
    made.commit(made.b, "billing", orders_0=12)
    done(made, "run", "b->a")
    assert at() == (12, 12)
    made.commit(made.b, "billing", orders_0=13)
    done(made, *BACK)
    assert at() == (13, 13)
    made.produce(made.a, "orders", 0, 5)
    made.commit(made.a, "billing", orders_0=14)
    done(made, "run", "a->b")
    assert at() == (14, 14)
    for flow in FLOWS:
        found = done(made, "translate", flow, "--group", "billing")["partitions"]
        (one,) = (one for one in found if not one["source_partition"])
        assert one["target_offset"] == 14, flow
        for offset in (3, 12, 15):
            assert done(made, "translate", flow, "orders", "0", str(offset))["target_offset"] == offset, flow
    done(made, *OUT[:3], "out-2", *PLANNED)
    assert at() == (14, 14)


def test_a_step_that_dies_after_its_commit_keeps_the_producer_id_when_it_is_done_again(made: World) -> None:
    def is_written(_: Asked) -> bool:
        return bool(continued_in(made.a, "b"))

    fault = Fault(api="Produce", topic=ledger_topic("a"), code=codes.TOPIC_AUTHORIZATION_FAILED, only=is_written)
    made.b.faults.append(fault)
    assert made.ask(*OUT).code != 0
    written = continued_in(made.a, "b")
    assert (len(written), fault.happened) == (2, 1)
    assert step_of(done(made, *OUT), "reverse")["facts"]["started"]
    assert continued_in(made.a, "b") == written
    made.produce(made.b, "orders", 0, 5)
    done(made, "run", "b->a")
    assert batches_of(made.a) == [(10, written[0][2], 10)]


@pytest.mark.slow
def test_a_record_of_a_client_that_did_not_move_leaves_the_flow_to_a_failback_that_makes_its_topic_again(
    made: World,
) -> None:
    """The failback exports the record, and copies all to the topic that was created again. Then the flow continues."""
    when_promoted(made, lambda: made.produce(made.a, "orders", 0, 1))
    facts = not_started(made, "orders-0")
    assert "orders-1" not in facts["why"]
    assert continued_in(made.a, "b") == []
    made.produce(made.b, "orders", 0, 5)
    made.commit(made.b, "billing", orders_0=12)
    stopped(made.ask(*EXPORTED), "identical.return.ends")
    assert len((made.folder / "stranded.jsonl").read_text().splitlines()) >= 1
    created_again(made.a)
    back = done(made, *EXPORTED)
    assert (step_of(back, "return")["facts"]["started"], step_of(back, "reverse")["facts"]["started"]) == (True, True)
    assert (ends(made), is_same(made)) == ((15, 15), True)
    made.produce(made.a, "orders", 0, 2)
    done(made, "run", "a->b")
    assert (ends(made), is_same(made)) == ((17, 17), True)
    done(made, "switchover", "a->b", "--id", "out-2", *PLANNED)
    made.produce(made.b, "orders", 0, 1)
    done(made, "failback", "a->b", "--id", "back-2", *PLANNED)
    assert is_same(made)


def test_a_failback_begins_though_the_topic_was_created_again_before(made: World) -> None:
    when_promoted(made, lambda: made.produce(made.a, "orders", 0, 1))
    not_started(made, "orders-0")
    created_again(made.a)
    assert step_of(done(made, *BACK), "return")["facts"]["started"]
    assert is_same(made)


@pytest.mark.slow
def test_another_record_at_the_last_offset_leaves_the_flow_unstarted(made: World) -> None:
    when_promoted(made, lambda: another_last_record(made.a))
    assert "orders-1" not in not_started(made, "orders-0")["why"]
    assert continued_in(made.a, "b") == []


@pytest.mark.slow
def test_a_partition_that_was_idle_between_two_moves_is_compared_at_the_second_one(made: World) -> None:
    """Its cut-over is that of the first move, and the ledger has it: a record came to the old cluster since."""
    done(made, *OUT)
    made.produce(made.b, "orders", 1, 1)
    done(made, *BACK)
    kept = continued_in(made.a, "b")
    when_promoted(made, lambda: made.produce(made.a, "orders", 0, 1), "out-2")
    answer = made.ask("switchover", "a->b", "--id", "out-2", *PLANNED)
    facts = step_of(answer.body, "reverse")["facts"]
    assert (facts["started"], "orders-0" in facts["why"], "orders-1" in facts["why"]) == (False, True, False)
    assert continued_in(made.a, "b") == kept


def test_another_record_at_the_last_offset_is_refused_by_the_first_run_and_no_batch_is_sent(made: World) -> None:
    done(made, *OUT)
    another_last_record(made.a)
    made.produce(made.b, "orders", 0, 5)
    made.produce(made.b, "orders", 1, 2)
    found = made.ask("run", "b->a").body
    assert [(one["code"], one["partition"]) for one in found["refusals"]] == [("identical.differs", 0)]
    assert (ends(made), values(made.a, 1) == values(made.b, 1)) == ((10, 15), True)


@pytest.mark.slow
def test_a_record_after_the_step_is_refused_by_the_first_run_as_that_of_another_producer(made: World) -> None:
    done(made, *OUT)
    made.produce(made.a, "orders", 0, 1)
    made.produce(made.b, "orders", 0, 5)
    found = made.ask("run", "b->a").body
    assert {one["partition"] for one in found["refusals"]} == {0}
    assert ends(made) == (11, 15)


@pytest.mark.slow
def test_after_a_failover_with_loss_the_failback_continues_when_the_topic_was_created_again(made: World) -> None:
    made.produce(made.a, "orders", 0, 3)
    over = done(made, "failover", "a->b", "--id", "f-1", *SWITCH)
    reverse = step_of(over, "reverse")["facts"]
    assert (reverse["started"], "orders-0" in reverse["why"]) == (False, True)
    made.produce(made.b, "orders", 0, 7)
    made.commit(made.b, "billing", orders_0=16)
    stopped(made.ask(*EXPORTED), "identical.return.ends")
    assert len((made.folder / "stranded.jsonl").read_text().splitlines()) >= 3
    assert continued_in(made.a, "b") == []

    created_again(made.a)
    back = done(made, *EXPORTED)
    assert step_of(back, "return")["facts"]["started"]
    assert (ends(made), is_same(made)) == ((17, 17), True)
    assert made.a.groups["billing"][TopicPartition("orders", 0)][0] == 16
    made.produce(made.a, "orders", 0, 2)
    done(made, "run", "a->b")
    assert (ends(made), is_same(made)) == ((19, 19), True)
    assert [at for at, _, sequence in batches_of(made.b) if at == sequence] == [0, 17]
    for flow in FLOWS:
        assert done(made, "verify", flow)["not_compared"] == [], flow


def test_a_flow_that_has_sent_batches_since_its_stop_is_not_started_while_one_may_arrive(made: World) -> None:
    """A client that did not move wrote a record at a. The flow was run by hand, and its batch may be late."""
    done(made, *OUT)
    made.produce(made.a, "orders", 0, 1)
    done(made, "pause", "b->a", "--reason", "by hand")
    done(made, "resume", "a->b")
    made.b.faults.append(Fault(api="Produce", topic="orders", code=codes.TOPIC_AUTHORIZATION_FAILED, times=99))
    assert made.ask("run", "a->b").code != 0
    made.b.faults.clear()
    done(made, "pause", "a->b", "--reason", "standby")
    done(made, "resume", "b->a")
    del made.a.log("orders", 0).entries[-1]
    refused = stopped(made.ask(*BACK), "identical.late")
    assert ("orders-0" in refused["places"], "orders-1" in refused["places"]) == (True, False)
    made.now_ms += HOUR_MS // 2
    again = stopped(made.ask(*BACK), "identical.late")
    assert again["until"] == refused["until"], "the first try has fenced the lane"
    made.now_ms += HOUR_MS
    assert step_of(done(made, *BACK), "reverse")["facts"]["started"]


@pytest.mark.slow
def test_a_run_that_dies_after_its_first_batch_gets_receipts_from_there_on(made: World) -> None:
    done(made, *OUT)
    made.produce(made.b, "orders", 0, 5)
    made.a.faults.append(Fault(api="TxnOffsetCommit", code=codes.GROUP_AUTHORIZATION_FAILED))
    assert made.ask("run", "b->a").code != 0
    assert (ends(made), is_same(made)) == ((15, 15), True)
    made.produce(made.b, "orders", 0, 2)
    found = done(made, "run", "b->a", "--id", "again")
    assert [(one["partition"], one["start"], one["end"]) for one in found["receipts"]] == [(0, 10, 15), (0, 15, 17)]
    assert (ends(made), is_same(made)) == ((17, 17), True)
    assert [(at, sequence) for at, _, sequence in batches_of(made.a)] == [(10, 10), (15, 15)]
    assert len({producer for _, producer, _ in batches_of(made.a)}) == 1


@pytest.mark.slow
def test_a_lane_that_has_written_identical_offsets_is_no_way_back_while_the_file_says_translated(made: World) -> None:
    done(made, *OUT)
    made.produce(made.b, "orders", 0, 5)
    done(made, "run", "b->a")
    done(made, *BACK)
    over = ("switchover", "a->b", "--no-reverse", "--id", "out-2", *PLANNED)

    def opposite() -> list[str]:
        checks = made.ask(*over, "--dry-run").body["readiness"]["checks"]
        return [one.get("code") for one in checks if one["name"] == "opposite" and not one["ok"]]

    made.write(*FILE, *BOTH[:2], "b->a.ferry.offsets = translated")
    assert opposite() == ["identical.back.written"]
    assert made.ask(*over).code == 2
    made.write(*FILE, *BOTH)
    assert opposite() == []
    done(made, *over)
