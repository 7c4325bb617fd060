"""Cases of sequences, of what is in a transaction, and of what readers see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from tests.kafka.raw import Producer, Raw
from tests.kafka.wire.talk import Cases, Talk

NO_TOPIC = UUID(int=2**127 + 5)

CASES = Cases()


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


@CASES.of_both
async def sequences_in_a_transaction(talk: Talk) -> None:
    who = await talk.init()
    await _sequences(talk, who, talk.write)
    await talk.end(who, True)
    await talk.log()


@CASES.of_both
async def sequences_outside_transactions(talk: Talk) -> None:
    await _sequences(talk, await talk.init(name=None), talk.produce)
    await talk.log()


@CASES.of_both
async def a_first_batch_that_is_not_the_first(talk: Talk) -> None:
    who = await talk.init()
    await talk.write(who, 5)
    await talk.write(who, 0)
    await talk.log()
    await talk.end(who, True)
    await talk.log()


@CASES.of_both
async def a_first_batch_outside_transactions_that_is_not_the_first(talk: Talk) -> None:
    who = await talk.init(name=None)
    await talk.produce(who, 5)
    await talk.produce(who, 0)
    await talk.produce(who, 6)


@CASES.of_both
async def epochs_outside_transactions(talk: Talk) -> None:
    who = await talk.init(name=None)
    new = Producer(who.id, who.epoch + 1)
    await talk.produce(who, 0)
    await talk.produce(new, 1)
    await talk.produce(new, 0)
    await talk.produce(who, 1)
    await talk.produce(who, 0)
    await talk.log()


@CASES.of_both
async def a_new_epoch_begins_in_the_middle(talk: Talk) -> None:
    who = await talk.open()
    await talk.end(who, True)
    new = await talk.init()
    await talk.write(new, 2)
    await talk.write(new, 0)
    await talk.log()


@CASES.of_both
async def sequences_continue_after_a_commit(talk: Talk) -> None:
    who = await talk.end(await talk.open(), True)
    for sequence in (2, 0):
        await talk.write(who, sequence)
    await talk.log()


@CASES.of_both
async def a_batch_once_more_after_its_commit(talk: Talk) -> None:
    who = await talk.open()
    new = await talk.end(who, True)
    await talk.write(who, 0, 2, joins=False)
    await talk.write(new, 0, 2, joins=False)
    await talk.log()


@CASES.of_both
async def a_late_batch_after_a_commit(talk: Talk) -> None:
    who = await talk.open()
    await talk.end(who, True)
    await talk.write(who, 2, joins=False)
    await talk.log()


@CASES.of_both
async def data_outside_a_transaction_amid_it(talk: Talk) -> None:
    who = await talk.open()
    await talk.produce(who, 2)
    await talk.log()


# ---- membership


@CASES.of_first
async def a_partition_that_was_not_added(talk: Talk) -> None:
    who = await talk.init()
    await talk.write(who, 0, joins=False)
    await talk.add(who, 1)
    await talk.write(who, 0, joins=False)
    await talk.write(who, 0, joins=False, partition=1)
    await talk.log()


@CASES.of_first
async def partitions_of_which_one_is_not_there(talk: Talk) -> None:
    who = await talk.init()
    await talk.add(who, 0, 1, 7)
    await talk.state()


@CASES.of_first
async def a_group_that_was_not_added(talk: Talk) -> None:
    who = await talk.init()
    await talk.position(who, 5, joins=False)


@CASES.of_both
async def two_partitions_and_a_group(talk: Talk) -> None:
    who = await talk.open()
    await talk.write(who, 0, 3, partition=1)
    await talk.position(who, 7)
    await talk.position(who, 8)
    new = await talk.end(who, True)
    await talk.position(new, 9)
    for partition in (0, 1):
        await talk.log(partition)


@CASES.of_both
async def a_position_of_a_member_that_is_not_there(talk: Talk) -> None:
    who = await talk.init()
    await talk.position(who, 5, generation=3, member="another")
    await talk.position(who, 5, generation=3)
    await talk.position(who, 5)


@CASES.of_both
async def a_position_of_a_partition_that_is_not_there(talk: Talk) -> None:
    who = await talk.init()
    missing = Raw(talk.raw.cluster, f"{talk.raw.topic}-missing")
    if talk.version == 1:
        await talk.add_group(who)
    talk.said.append((await missing.position(talk.name, who, talk.group, 5, version=1),))


# ---- what readers see


@CASES.of_both
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


@CASES.of_both
async def aborted_transactions_of_two_partitions(talk: Talk) -> None:
    who = await talk.init()
    for _ in range(2):
        await talk.write(who, 0, 2)
        await talk.write(who, 0, 1, partition=1)
        await talk.end(who, False)
        who = await talk.init()
    for partition in (0, 1):
        await talk.log(partition)


@CASES.of_both
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


@CASES.of_both
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


@CASES.of_both
async def a_wrong_topic_id(talk: Talk) -> None:
    who = await talk.init()
    if talk.version == 2:
        await talk.produce(who, 0, topic_id=NO_TOPIC)
        await talk.write(who, 0, topic_id=NO_TOPIC)
    await talk.fetch(0, topic_id=NO_TOPIC)
