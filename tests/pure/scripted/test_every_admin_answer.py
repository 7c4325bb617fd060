"""Whatever a run is answered where it reads positions, groups and topics, or changes topics: nothing is lost.

Each kind of request of a second run, whose source has more records, a partition more, another setting and a group that
has read on, meets Kafka's error codes, before and after it was carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ferry.kafka.admin.topics import transaction_state
from ferry.kafka.connect import codes
from ferry.model import TopicPartition
from ferry.protocol.names import ledger_topic
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world, world_after
from tests.pure.protocol.world import TOPIC
from tests.pure.scripted.batches import row
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Asked, At, Fault
from tests.pure.scripted.table import CODES, Case, Request, Table, each
from tests.pure.scripted.wire import scripted
from tests.tiers import IN_PART

FEW = frozenset(
    {
        codes.UNKNOWN_TOPIC_OR_PARTITION,
        codes.REQUEST_TIMED_OUT,
        codes.NOT_COORDINATOR,
        codes.TOPIC_AUTHORIZATION_FAILED,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.POLICY_VIOLATION,
        codes.GROUP_ID_NOT_FOUND,
        codes.UNSTABLE_OFFSET_COMMIT,
        codes.THROTTLING_QUOTA_EXCEEDED,
        999,
    }
)
SAYS_GONE = {codes.UNKNOWN_TOPIC_OR_PARTITION, codes.UNKNOWN_TOPIC_ID, codes.INVALID_TOPIC, *codes.UNAUTHORIZED}
"""What says of a topic that it is not there, or is hidden."""
COPY = f"a.{TOPIC}"
FIRST, SECOND = [10, 8], [13, 10, 5]
"""How many records the source's partitions have in each run."""
READ = {0: 12, 1: 6}
"""Where the group is at the target in the end; a marker lies before what it has read last of partition 0."""
COPIED_END = 11
"""The end of partition 0 of the copy after the first run."""
RETENTION_MS = "1000000"


def begun_before(made: World) -> None:
    """A flow that has run once, and whose source has changed since."""
    begun(made, topics={TOPIC: len(FIRST)})
    made.commit(made.a, "billing", **{f"{TOPIC}_0": 4})
    assert made.ask("run", "a->b", "--id", "r1").code == 0
    grow(made)


def judge(_version: int, side: str, fault: Fault) -> None:
    """The second run with this fault says what is true, and the third, without it, does the rest."""
    print(f"{side}: {fault}")
    with world_after(begun_before) as made:
        brokers = getattr(made, side)
        brokers.faults.append(fault)
        said = made.ask("run", "a->b", "--id", "r2")
        assert fault.happened, "the run made no such request"
        copied = copied_of(made)
        for numbers in copied:
            assert numbers == list(range(len(numbers))), "once, in order"
        whole, done = [len(numbers) for numbers in copied] == SECOND, read_of(made) == READ
        assert read_of(made)[0] in {4, COPIED_END, READ[0]}, "the group is never past what it has read"
        body = said.body
        if "error" in body:
            assert said.code
            assert body["error"]["kind"] != "bug", "an answer of a broker is no fault of Ferry"
        else:
            assert (said.code == 0) == (body["state"] == "success")
            ends = {each["partition"]: each["end"] for each in body["receipts"]}
            assert all(end <= len(copied[number]) for number, end in ends.items()), "no more is claimed than is there"
            assert whole or said.code, "what is missing is said"
            if fault.code not in SAYS_GONE:
                assert not {"topic-gone", "target-changed"} & {one["kind"] for one in body["refusals"]}
            groups = body["groups"]
            assert done or not whole or groups is None or groups["left"] or said.code, "what is not written is named"
        brokers.faults.clear()
        set_now = made.b.own[COPY].get("retention.ms") == RETENTION_MS
        if IN_PART and said.code == 0 and whole and done and set_now:
            return
        again = made.ask("run", "a->b", "--id", "r3")
        assert (again.code, again.body["state"]) == (0, "success")
        assert copied_of(made) == [list(range(count)) for count in SECOND]
        assert read_of(made) == READ
        assert made.b.own[COPY]["retention.ms"] == RETENTION_MS


def grow(made: World) -> None:
    """What changes at the source between two runs."""
    made.a.topic(TOPIC, len(SECOND))
    made.a.own[TOPIC] = {"retention.ms": RETENTION_MS}
    for number, count in enumerate(SECOND):
        made.produce(made.a, TOPIC, number, count - made.a.log(TOPIC, number).end)
    made.commit(made.a, "billing", **{f"{TOPIC}_0": 11, f"{TOPIC}_1": 6})


def copied_of(made: World) -> list[list[int]]:
    """The source offsets of what a read_committed consumer gets of each partition of the copy, in its order."""
    made.b.deliver_markers()
    logs: list[Any] = [made.b.target.logs.get(f"{COPY}-{number}") for number in range(len(SECOND))]
    return [[int(row(payload)[2] or b"") for _, payload in log.committed()] if log else [] for log in logs]


def read_of(made: World) -> dict[int, int]:
    """Where the group is at the target, by partition."""
    held = made.b.groups.get("billing", {})
    return {place.partition: at for place, (at, _) in held.items() if place == TopicPartition(COPY, place.partition)}


def settings_of(topic: str) -> Callable[[Asked], bool]:
    """Whether a request asks for the settings of a topic."""
    return lambda asked: any(one.resource_name == topic for one in asked.request.resources)


def of_run(fault: Fault, side: str = "b", *, writes: bool = False, quick: bool = True) -> Request:
    """A request of the second run."""
    asked = FEW if IN_PART else CODES
    if fault.at is At.LISTED and fault.api == "OffsetFetch":
        asked -= {codes.GROUP_ID_NOT_FOUND}  # it says that the group has no offsets
    return Request(judge=judge, fault=fault, side=side, writes=writes, codes=asked, versions=(2,), quick=quick)


TABLE = Table(
    {
        "positions": of_run(Fault(api="OffsetFetch", key="ferry.a->b.live")),
        "all positions": of_run(Fault(api="OffsetFetch", key="ferry.a->b.live", times=99)),
        "source's groups": of_run(Fault(api="OffsetFetch", key="billing"), "a"),
        "target's groups": of_run(Fault(api="OffsetFetch", key="billing")),
        "growth": of_run(Fault(api="CreatePartitions", topic=COPY), writes=True),
        "setting": of_run(Fault(api="IncrementalAlterConfigs"), writes=True),
        "list of groups": of_run(Fault(api="ListGroups"), "a"),
        "source's topics": of_run(Fault(api="Metadata", topic=TOPIC, at=At.LISTED), "a"),
        "target's topics": of_run(Fault(api="Metadata", topic=COPY, at=At.LISTED)),
        "source's topic by name": of_run(Fault(api="Metadata", topic=TOPIC, at=At.LISTED, skip=2), "a"),
        "target's topic by name": of_run(Fault(api="Metadata", topic=COPY, at=At.LISTED, skip=1)),
        "ledger's topic": of_run(Fault(api="Metadata", topic=ledger_topic("a"), at=At.LISTED)),
        "source's whole metadata": of_run(Fault(api="Metadata", topic=TOPIC, at=At.OUTER), "a"),
        "target's whole metadata": of_run(Fault(api="Metadata", topic=COPY, at=At.OUTER)),
        "one position": of_run(Fault(api="OffsetFetch", key="ferry.a->b.live", at=At.ONE)),
        "whole positions": of_run(Fault(api="OffsetFetch", key="ferry.a->b.live", at=At.OUTER)),
        "whole group at the source": of_run(Fault(api="OffsetFetch", key="billing", at=At.LISTED), "a"),
        "whole group at the target": of_run(Fault(api="OffsetFetch", key="billing", at=At.LISTED)),
        "one offset at the source": of_run(Fault(api="OffsetFetch", key="billing", at=At.ONE), "a"),
        "one offset at the target": of_run(Fault(api="OffsetFetch", key="billing", at=At.ONE)),
        "offset syncs": of_run(Fault(api="Produce", topic="mm2-offset-syncs.a.internal"), writes=True, quick=False),
        "checkpoints": of_run(Fault(api="Produce", topic="a.checkpoints.internal"), writes=True, quick=False),
        "source's settings": of_run(Fault(api="DescribeConfigs", only=settings_of(TOPIC)), "a", quick=False),
        "ledger's settings": of_run(Fault(api="DescribeConfigs", only=settings_of(ledger_topic("a"))), quick=False),
    }
)


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


def test_an_offset_of_the_target_that_is_not_known_is_not_none() -> None:
    """Or the group would stay where it is, as if it had been reset there."""
    judge(2, "b", Fault(api="OffsetFetch", key="billing", code=codes.UNKNOWN_TOPIC_OR_PARTITION))


def test_an_offset_of_the_source_that_is_denied_is_not_deleted() -> None:
    """A broker may say so in the answer about all offsets, and not in the next one, about a partition."""
    with world_after(begun_before) as made:
        made.a.faults.append(Fault(api="OffsetFetch", key="billing", code=codes.TOPIC_AUTHORIZATION_FAILED))
        said = made.ask("run", "a->b", "--id", "r2")
        assert said.code
        assert [one["code"] for one in said.body["groups"]["left"]] == ["group.denied"]
        assert read_of(made)[0] == READ[0]


@pytest.mark.slow
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_partition_whose_offsets_cannot_be_had_is_refused_and_the_others_are_copied(side: str) -> None:
    """As where its log directory is offline: what lies there is not known, and not none."""
    with TemporaryDirectory() as folder, world(Path(folder)) as made:
        begun(made, topics={TOPIC: 2, "users": 1})
        assert made.ask("run", "a->b", "--id", "r1", "--max-records", "3").code == 0
        broken = {"a": "users", "b": "a.users"}[side]
        fault = Fault(api="ListOffsets", topic=broken, code=codes.KAFKA_STORAGE_ERROR, at=At.NAMED, times=9_999)
        getattr(made, side).faults.append(fault)
        said = made.ask("run", "a->b", "--id", "r2")
        assert (said.code, said.body["state"]) == (1, "partial")
        refused = [(one["topic"], one["partition"], one["kind"]) for one in said.body["refusals"]]
        assert refused == [("users", 0, "storage-error")]
        assert {one["topic"] for one in said.body["receipts"]} == {TOPIC}
        if side == "a":
            lags = {one["topic"]: one["lag_records"] for one in made.ask("lag", "a->b").body["partitions"]}
            assert lags == {TOPIC: 0, "users": None}
        getattr(made, side).faults.clear()
        assert made.ask("run", "a->b", "--id", "r3").code == 0
        assert len(list(made.b.log("a.users").committed())) == 10


@pytest.mark.parametrize("code", [codes.COORDINATOR_NOT_AVAILABLE, codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, 105])
def test_a_transaction_whose_state_is_refused_has_no_known_partitions(code: int) -> None:
    brokers = Brokers(alias="two")
    brokers.faults.append(Fault(api="DescribeTransactions", code=code, times=9))
    with scripted(brokers) as (_, (cluster,)):
        said = cluster.loop.run(lambda: transaction_state(cluster, "t"))
    assert codes.describe(code) in said
    assert "partitions" not in said
