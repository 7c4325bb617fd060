"""The scripted brokers of the pure tests answer as Kafka does: the same requests to both, and the same answers.

Each sequence of requests is one case. Producer ids are compared by the order in which they appeared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from ferry.dev import RunningCluster
from ferry.kafka.connect.cluster import Cluster
from ferry.wire.batch import batches
from tests.harness import create_topic, on_cluster
from tests.kafka.raw import Producer, Raw
from tests.pure.protocol.broker import LAST_EPOCH, Txn
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.wire import scripted

PARTITIONS = 2
NO_TOPIC = UUID(int=2**127 + 5)


class Talk:
    """Requests of one client of a topic, and all that was answered."""

    def __init__(self, raw: Raw, version: int) -> None:
        """`version`: of transactions."""
        self.raw = raw
        self.version = version
        self.name = f"slot-{raw.topic}"
        self.group = f"group-{raw.topic}"
        self.said: list[tuple[Any, ...]] = []
        self.transactions: dict[str, Txn] | None = None
        """Those of the scripted broker."""
        self._ids: list[int] = []

    def _who(self, one: Producer) -> tuple[int, int]:
        """A producer as it is compared: its id by the order of first appearance, -1 for none, and its epoch."""
        if one.id >= 0 and one.id not in self._ids:
            self._ids.append(one.id)
        return self._ids.index(one.id) if one.id >= 0 else -1, one.epoch

    async def init(self, own: Producer | None = None, *, once: bool = False, name: str | None = "") -> Producer:
        """InitProducerId: by default of the transactional id; None: of a producer without transactions."""
        code, who = await self.raw.initialised(self.name if name == "" else name, own, once=once)
        self.said.append(("InitProducerId", code, *self._who(who)))
        return who

    async def wear(self, left: int) -> None:
        """Use up the epochs of the transactional id but so many; the scripted broker takes a short cut."""
        who = await self.init()
        if self.transactions is not None:
            self.transactions[self.name].epoch = LAST_EPOCH - left
        while self.transactions is None and who.epoch < LAST_EPOCH - left:
            who = await self.raw.init(self.name)

    async def open(self, records: int = 2) -> Producer:
        """A producer with a transaction of so many records in partition 0."""
        who = await self.init()
        await self.write(who, 0, records)
        return who

    async def write(self, who: Producer, sequence: int, count: int = 1, *, joins: bool = True, **more: Any) -> None:
        """A batch in the transaction; the partition joins first where transactions are of version 1."""
        if joins and self.version == 1:
            await self.add(who, more.get("partition", 0))
        await self.produce(who, sequence, count, transactional_id=self.name, **more)

    async def produce(self, who: Producer, sequence: int, count: int = 1, **more: Any) -> None:
        """A batch, by default outside transactions."""
        found = await self.raw.produce(who, sequence, count, version=self.version, again=(19, 51), **more)
        self.said.append(("Produce", *found))

    async def add(self, who: Producer, *partitions: int) -> None:
        """AddPartitionsToTxn, by default of partition 0."""
        self.said.append(("AddPartitionsToTxn", *await self.raw.added(self.name, who, partitions or (0,))))

    async def add_group(self, who: Producer) -> None:
        """AddOffsetsToTxn."""
        self.said.append(("AddOffsetsToTxn", await self.raw.group_added(self.name, who, self.group)))

    async def position(self, who: Producer, offset: int, *, joins: bool = True, **more: Any) -> None:
        """TxnOffsetCommit; the group joins first where transactions are of version 1."""
        if joins and self.version == 1:
            await self.add_group(who)
        code = await self.raw.position(self.name, who, self.group, offset, version=self.version, **more)
        self.said.append(("TxnOffsetCommit", code))

    async def end(self, who: Producer, commit: bool) -> Producer:
        """EndTxn, and all markers; the producer that begins the next transaction."""
        code, found = await self.raw.ended(self.name, who, version=self.version, commit=commit)
        self.said.append(("EndTxn", code, *self._who(found)))
        await self.state()
        return who if code else found

    async def state(self) -> None:
        """DescribeTransactions, when all markers are written."""
        code, state, who = await self.raw.settled(self.name)
        self.said.append(("DescribeTransactions", code, state, *((who.id, who.epoch) if code else self._who(who))))

    async def log(self, partition: int = 0) -> None:
        """Where the log and what is stable of it end, and what a read_committed consumer gets of it."""
        await self.state()
        ends = [await self.raw.listed(isolation=isolation, partition=partition) for isolation in (0, 1)]
        self.said.append(("ListOffsets", *ends))
        await self.fetch(0, isolation=1, partition=partition)

    async def fetch(self, at: int, **more: Any) -> None:
        """Fetch: code, high watermark, last stable offset, log start, aborted transactions, batches' base offsets."""
        found = await self.raw.fetched(at, **more)
        aborted = [(self._who(Producer(number, 0))[0], first) for number, first in found.aborted]
        bases = [one.base_offset for one in batches(found.records)] if found.records else []
        ends = (found.high_watermark, found.last_stable_offset, found.log_start_offset)
        self.said.append(("Fetch", found.error_code, *ends, aborted, bases))


Case = Callable[[Talk], Awaitable[None]]
BOTH: dict[str, Case] = {}
FIRST: dict[str, Case] = {}
"""Those of transactions of version 1 alone."""


def both(case: Case) -> Case:
    """A case of both versions of transactions."""
    BOTH[case.__name__] = case
    return case


def first(case: Case) -> Case:
    """A case of transactions of version 1."""
    FIRST[case.__name__] = case
    return case


# ---- a producer that another one has replaced


@both
async def produce_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.open()
    await talk.init()
    await talk.log()
    await talk.write(old, 2, joins=False)
    await talk.log()


@both
async def produce_of_an_old_epoch_that_the_partition_does_not_know(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.write(old, 0)
    await talk.log()


@first
async def partitions_and_group_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.add(old)
    await talk.add_group(old)


@both
async def position_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.position(old, 5, joins=False)


@both
async def position_of_an_old_epoch_that_the_group_knows(talk: Talk) -> None:
    old = await talk.init()
    await talk.position(old, 5)
    await talk.init()
    await talk.position(old, 6, joins=False)


@both
async def end_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    for commit in (True, False):
        await talk.end(old, commit)


@both
async def end_of_a_transaction_that_was_aborted(talk: Talk) -> None:
    old = await talk.open()
    await talk.init()
    for commit in (True, False):
        await talk.end(old, commit)
    await talk.log()


@both
async def end_of_a_transaction_that_is_being_aborted(talk: Talk) -> None:
    """The other one was not answered yet that it is initialised."""
    old = await talk.open()
    await talk.init(once=True)
    await talk.state()
    for commit in (True, False):
        await talk.end(old, commit)
    await talk.log()
    await talk.init()


@both
async def end_of_an_old_epoch_while_the_new_one_has_a_transaction(talk: Talk) -> None:
    old = await talk.init()
    new = await talk.open()
    for commit in (True, False):
        await talk.end(old, commit)
    await talk.end(new, True)
    await talk.log()


# ---- EndTxn once more


async def _repeated(talk: Talk, before: bool, after: bool) -> None:
    who = await talk.open()
    new = await talk.end(who, before)
    await talk.log()
    await talk.end(who, after)
    await talk.log()
    await talk.write(new, 0 if talk.version == 2 else 2)
    await talk.log()


@both
async def commit_after_commit(talk: Talk) -> None:
    await _repeated(talk, True, True)


@both
async def abort_after_commit(talk: Talk) -> None:
    await _repeated(talk, True, False)


@both
async def commit_after_abort(talk: Talk) -> None:
    await _repeated(talk, False, True)


@both
async def abort_after_abort(talk: Talk) -> None:
    await _repeated(talk, False, False)


@both
async def commit_once_more_when_the_next_transaction_has_begun(talk: Talk) -> None:
    who = await talk.open()
    new = await talk.end(who, True)
    await talk.write(new, 0 if talk.version == 2 else 2)
    if talk.version == 2:
        await talk.end(who, True)
    await talk.log()


@both
async def commit_without_members(talk: Talk) -> None:
    await talk.end(await talk.init(), True)


@both
async def abort_without_members(talk: Talk) -> None:
    who = await talk.end(await talk.init(), False)
    await talk.write(who, 0)


@both
async def end_with_a_later_identity_and_no_transaction(talk: Talk) -> None:
    who = await talk.end(await talk.open(), True)
    if talk.version == 2:
        await talk.end(who, True)
        await talk.end(who, False)


# ---- identities


@both
async def a_wrong_producer_id(talk: Talk) -> None:
    who = await talk.init()
    wrong = Producer(who.id + 77_777, who.epoch)
    await talk.write(wrong, 0)
    await talk.position(wrong, 5)
    await talk.end(wrong, True)


@both
async def a_transactional_id_that_nobody_initialised(talk: Talk) -> None:
    who = await talk.init(name=None)
    await talk.write(who, 0)
    await talk.position(who, 5)
    await talk.end(who, True)


@both
async def initialise_over_an_open_transaction(talk: Talk) -> None:
    await talk.open()
    await talk.init(once=True)
    await talk.state()
    await talk.init()
    await talk.log()


@both
async def initialise_over_a_transaction_that_is_ending(talk: Talk) -> None:
    who = await talk.open()
    code, found = await talk.raw.ended(talk.name, who, version=talk.version, commit=True)
    talk.said.append((code, found.epoch))
    await talk.init()
    await talk.log()


@both
async def initialise_with_the_own_epoch(talk: Talk) -> None:
    who = await talk.init()
    new = await talk.init(who)
    await talk.write(who, 0)
    await talk.write(new, 0)
    await talk.log()


@both
async def initialise_with_the_own_epoch_twice(talk: Talk) -> None:
    who = await talk.init()
    await talk.init(who)
    await talk.init(who)


@both
async def initialise_with_the_epoch_before_a_commit(talk: Talk) -> None:
    who = await talk.open()
    await talk.end(who, True)
    await talk.init(who)


@both
async def initialise_with_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.init()
    await talk.init(old)


@both
async def initialise_with_the_own_epoch_over_the_own_transaction(talk: Talk) -> None:
    who = await talk.open()
    await talk.init(who, once=True)
    await talk.state()
    await talk.init(who)
    await talk.log()


@both
async def initialise_with_an_old_epoch_over_a_transaction(talk: Talk) -> None:
    old = await talk.init()
    await talk.open()
    await talk.init(old, once=True)
    await talk.log()


# ---- sequences


async def _sequences(talk: Talk, who: Producer, write: Callable[..., Awaitable[None]]) -> None:
    """A gap, overlaps, and batches once more: the last one, the one six before it, and one of another length."""
    await write(who, 0, 2)
    await write(who, 3, 1)
    await write(who, 1, 2)
    await write(who, 0, 2)
    await write(who, 0, 1)
    for number in range(2, 8):
        await write(who, number, 1)
    await write(who, 7, 1)
    await write(who, 3, 1)
    await write(who, 2, 1)
    await write(who, 0, 2)
    await write(who, 8, 1)


@both
async def sequences_in_a_transaction(talk: Talk) -> None:
    who = await talk.init()
    await _sequences(talk, who, talk.write)
    await talk.end(who, True)
    await talk.log()


@both
async def sequences_outside_transactions(talk: Talk) -> None:
    await _sequences(talk, await talk.init(name=None), talk.produce)
    await talk.log()


@both
async def a_first_batch_that_is_not_the_first(talk: Talk) -> None:
    who = await talk.init()
    await talk.write(who, 5)
    await talk.write(who, 0)
    await talk.log()
    await talk.end(who, True)
    await talk.log()


@both
async def a_first_batch_outside_transactions_that_is_not_the_first(talk: Talk) -> None:
    who = await talk.init(name=None)
    await talk.produce(who, 5)
    await talk.produce(who, 0)
    await talk.produce(who, 6)


@both
async def epochs_outside_transactions(talk: Talk) -> None:
    who = await talk.init(name=None)
    new = Producer(who.id, who.epoch + 1)
    await talk.produce(who, 0)
    await talk.produce(new, 1)
    await talk.produce(new, 0)
    await talk.produce(who, 1)
    await talk.produce(who, 0)
    await talk.log()


@both
async def a_new_epoch_begins_in_the_middle(talk: Talk) -> None:
    who = await talk.open()
    await talk.end(who, True)
    new = await talk.init()
    await talk.write(new, 2)
    await talk.write(new, 0)
    await talk.log()


@both
async def sequences_continue_after_a_commit(talk: Talk) -> None:
    who = await talk.end(await talk.open(), True)
    for sequence in (2, 0):
        await talk.write(who, sequence)
    await talk.log()


@both
async def a_batch_once_more_after_its_commit(talk: Talk) -> None:
    who = await talk.open()
    new = await talk.end(who, True)
    await talk.write(who, 0, 2, joins=False)
    await talk.write(new, 0, 2, joins=False)
    await talk.log()


@both
async def a_late_batch_after_a_commit(talk: Talk) -> None:
    who = await talk.open()
    await talk.end(who, True)
    await talk.write(who, 2, joins=False)
    await talk.log()


@both
async def data_outside_a_transaction_amid_it(talk: Talk) -> None:
    who = await talk.open()
    await talk.produce(who, 2)
    await talk.log()


# ---- membership


@first
async def a_partition_that_was_not_added(talk: Talk) -> None:
    who = await talk.init()
    await talk.write(who, 0, joins=False)
    await talk.add(who, 1)
    await talk.write(who, 0, joins=False)
    await talk.write(who, 0, joins=False, partition=1)
    await talk.log()


@first
async def partitions_of_which_one_is_not_there(talk: Talk) -> None:
    who = await talk.init()
    await talk.add(who, 0, 1, 7)
    await talk.state()


@first
async def a_group_that_was_not_added(talk: Talk) -> None:
    who = await talk.init()
    await talk.position(who, 5, joins=False)


@both
async def two_partitions_and_a_group(talk: Talk) -> None:
    who = await talk.open()
    await talk.write(who, 0, 3, partition=1)
    await talk.position(who, 7)
    await talk.position(who, 8)
    new = await talk.end(who, True)
    await talk.position(new, 9)
    for partition in (0, 1):
        await talk.log(partition)


@both
async def a_position_of_a_member_that_is_not_there(talk: Talk) -> None:
    who = await talk.init()
    await talk.position(who, 5, generation=3, member="somebody")
    await talk.position(who, 5, generation=3)
    await talk.position(who, 5)


@both
async def a_position_of_a_partition_that_is_not_there(talk: Talk) -> None:
    who = await talk.init()
    missing = Raw(talk.raw.cluster, f"{talk.raw.topic}-missing")
    if talk.version == 1:
        await talk.add_group(who)
    talk.said.append((await missing.position(talk.name, who, talk.group, 5, version=1),))


# ---- what readers see


@both
async def reads_around_transactions(talk: Talk) -> None:
    plain = await talk.init(name=None)
    await talk.produce(plain, 0, 2)
    await talk.log()
    who = await talk.end(await talk.open(3), False)
    await talk.log()
    await talk.produce(plain, 2, 1)
    await talk.write(who, 0 if talk.version == 2 else 3, 2)
    await talk.produce(plain, 3, 2)
    await talk.log()
    for at in (-1, 3, 5, 6, 7, 10, 11, 12):
        for isolation in (0, 1):
            await talk.fetch(at, isolation=isolation)
    await talk.end(who, True)
    await talk.log()
    for at in (3, 5, 6):
        await talk.fetch(at, isolation=1)


@both
async def aborted_transactions_of_two_partitions(talk: Talk) -> None:
    who = await talk.init()
    for _ in range(2):
        await talk.write(who, 0, 2)
        await talk.write(who, 0, 1, partition=1)
        await talk.end(who, False)
        who = await talk.init()
    for partition in (0, 1):
        await talk.log(partition)


@both
async def deleted_records(talk: Talk) -> None:
    plain = await talk.init(name=None)
    await talk.produce(plain, 0, 2)
    await talk.produce(plain, 2, 2)
    talk.said.append((await talk.raw.delete(3),))
    talk.said.append(await talk.raw.listed(at=-2))
    for at in (0, 2, 3, 4, 5):
        await talk.fetch(at)
    await talk.produce(plain, 2, 2)
    await talk.produce(plain, 4, 1)


@both
async def places_that_are_not_there(talk: Talk) -> None:
    who = await talk.init()
    node = await talk.raw.leader()
    await talk.produce(who, 0, partition=7, node=node)
    await talk.write(who, 0, partition=7, node=node)
    await talk.fetch(0, partition=7, node=node)
    talk.said.append(await talk.raw.listed(partition=7, node=node))
    missing = Talk(Raw(talk.raw.cluster, f"{talk.raw.topic}-missing"), talk.version)
    missing.name = talk.name
    await missing.produce(who, 0, node=node, topic_id=NO_TOPIC)
    await missing.write(who, 0, node=node, topic_id=NO_TOPIC)
    await missing.fetch(0, node=node, topic_id=NO_TOPIC)
    missing.said.append(await missing.raw.listed(node=node))
    talk.said += missing.said


@both
async def a_wrong_topic_id(talk: Talk) -> None:
    who = await talk.init()
    if talk.version == 2:
        await talk.produce(who, 0, topic_id=NO_TOPIC)
        await talk.write(who, 0, topic_id=NO_TOPIC)
    await talk.fetch(0, topic_id=NO_TOPIC)


async def epochs_that_are_used_up(talk: Talk) -> None:
    """By InitProducerId, by commits, and by InitProducerId over an open transaction."""
    await talk.wear(left=4)
    for _ in range(6):
        await talk.init()
    talk.name += "-ended"
    await talk.wear(left=4)
    who = await talk.init()
    for number in range(6):
        await talk.write(who, 0 if talk.version == 2 else number)
        who = await talk.end(who, True)
    await talk.log()
    talk.name += "-open"
    await talk.wear(left=1)
    await talk.open()
    await talk.init(once=True)
    await talk.state()
    await talk.init()
    await talk.log()


TALKS = [(1, name) for name in BOTH | FIRST] + [(2, name) for name in BOTH]


BEFORE_4: dict[str, dict[int, tuple[Any, ...]]] = {
    "initialise_with_the_own_epoch_over_the_own_transaction": {
        5: ("InitProducerId", 90, -1, -1),
        6: ("DescribeTransactions", 0, "CompleteAbort", 0, 1),
    },
    "a_position_of_a_member_that_is_not_there": {2: ("TxnOffsetCommit", 25), 4: ("TxnOffsetCommit", 25)},
}
"""What Kafka 3.9.1 answers otherwise, by the number of the answer."""


def of_script(case: Case, topic: str, version: int) -> list[tuple[Any, ...]]:
    """What the scripted broker answers."""
    brokers = Brokers(alias="scripted", version=version)
    brokers.topic(topic, PARTITIONS)
    with scripted(brokers) as (_, [cluster]):
        talks: list[Talk] = []

        async def act() -> None:
            talks.append(Talk(await Raw(cluster, topic).open(), version))
            talks[0].transactions = brokers.target.txns
            await case(talks[0])

        cluster.loop.run(act)
    return talks[0].said


def of_kafka(case: Case, cluster: RunningCluster, topic: str, version: int) -> list[tuple[Any, ...]]:
    """What a real broker answers."""
    create_topic(cluster, topic, PARTITIONS)
    talks: list[Talk] = []

    async def act(client: Cluster) -> None:
        talks.append(Talk(await Raw(client, topic).open(), version))
        await case(talks[0])

    on_cluster(cluster, act)
    return talks[0].said


@pytest.mark.parametrize(("version", "name"), TALKS)
def test_kafka_answers_the_same(target_cluster: RunningCluster, topic: str, version: int, name: str) -> None:
    case = (BOTH | FIRST)[name]
    assert of_kafka(case, target_cluster, topic, version) == of_script(case, topic, version)


@pytest.mark.parametrize("name", BOTH | FIRST)
def test_kafka_3_9_answers_the_same(old_cluster: RunningCluster, topic: str, name: str) -> None:
    case = (BOTH | FIRST)[name]
    expected = of_script(case, topic, 1)
    for number, other in BEFORE_4.get(name, {}).items():
        assert expected[number] != other
        expected[number] = other
    assert of_kafka(case, old_cluster, topic, 1) == expected


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", [1, 2])
def test_epochs_that_are_used_up(target_cluster: RunningCluster, topic: str, version: int) -> None:
    expected = of_script(epochs_that_are_used_up, topic, version)
    assert of_kafka(epochs_that_are_used_up, target_cluster, topic, version) == expected
