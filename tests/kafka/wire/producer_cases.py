"""Cases of producers, of their identities and of EndTxn."""

from __future__ import annotations

from uuid import UUID

from tests.kafka.raw import Producer
from tests.kafka.wire.talk import Cases, Talk

NO_TOPIC = UUID(int=2**127 + 5)

CASES = Cases()


# ---- a producer that another one has replaced


@CASES.of_both
async def produce_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.open()
    await talk.init()
    await talk.log()
    await talk.write(old, 2, joins=False)
    await talk.log()


@CASES.of_both
async def produce_of_an_old_epoch_that_the_partition_does_not_know(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.write(old, 0)
    await talk.log()


@CASES.of_first
async def partitions_and_group_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.add(old)
    await talk.add_group(old)


@CASES.of_both
async def position_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.position(old, 5, joins=False)


@CASES.of_both
async def position_of_an_old_epoch_that_the_group_knows(talk: Talk) -> None:
    old = await talk.init()
    await talk.position(old, 5)
    await talk.init()
    await talk.position(old, 6, joins=False)


@CASES.of_both
async def end_of_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    for commit in (True, False):
        await talk.end(old, commit)


@CASES.of_both
async def end_of_a_transaction_that_was_aborted(talk: Talk) -> None:
    old = await talk.open()
    await talk.init()
    for commit in (True, False):
        await talk.end(old, commit)
    await talk.log()


@CASES.of_both
async def end_of_a_transaction_that_is_being_aborted(talk: Talk) -> None:
    """The other one was not answered yet that it is initialised."""
    old = await talk.open()
    await talk.init(once=True)
    await talk.state()
    for commit in (True, False):
        await talk.end(old, commit)
    await talk.log()
    await talk.init()


@CASES.of_both
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


@CASES.of_both
async def commit_after_commit(talk: Talk) -> None:
    await _repeated(talk, True, True)


@CASES.of_both
async def abort_after_commit(talk: Talk) -> None:
    await _repeated(talk, True, False)


@CASES.of_both
async def commit_after_abort(talk: Talk) -> None:
    await _repeated(talk, False, True)


@CASES.of_both
async def abort_after_abort(talk: Talk) -> None:
    await _repeated(talk, False, False)


@CASES.of_both
async def commit_once_more_when_the_next_transaction_has_begun(talk: Talk) -> None:
    who = await talk.open()
    new = await talk.end(who, True)
    await talk.write(new, 0 if talk.version == 2 else 2)
    if talk.version == 2:
        await talk.end(who, True)
    await talk.log()


@CASES.of_both
async def commit_without_members(talk: Talk) -> None:
    await talk.end(await talk.init(), True)


@CASES.of_both
async def abort_without_members(talk: Talk) -> None:
    who = await talk.end(await talk.init(), False)
    await talk.write(who, 0)


@CASES.of_both
async def end_with_a_later_identity_and_no_transaction(talk: Talk) -> None:
    who = await talk.end(await talk.open(), True)
    if talk.version == 2:
        await talk.end(who, True)
        await talk.end(who, False)


# ---- identities


@CASES.of_both
async def a_wrong_producer_id(talk: Talk) -> None:
    who = await talk.init()
    wrong = Producer(who.id + 77_777, who.epoch)
    await talk.write(wrong, 0)
    await talk.position(wrong, 5)
    await talk.end(wrong, True)


@CASES.of_both
async def a_transactional_id_that_nobody_initialised(talk: Talk) -> None:
    who = await talk.init(name=None)
    await talk.write(who, 0)
    await talk.position(who, 5)
    await talk.end(who, True)


@CASES.of_both
async def initialise_over_an_open_transaction(talk: Talk) -> None:
    await talk.open()
    await talk.init(once=True)
    await talk.state()
    await talk.init()
    await talk.log()


@CASES.of_both
async def initialise_over_a_transaction_that_is_ending(talk: Talk) -> None:
    who = await talk.open()
    code, found = await talk.raw.ended(talk.name, who, version=talk.version, commit=True)
    talk.said.append((code, found.epoch))
    await talk.init()
    await talk.log()


@CASES.of_both
async def initialise_with_the_own_epoch(talk: Talk) -> None:
    who = await talk.init()
    new = await talk.init(who)
    await talk.write(who, 0)
    await talk.write(new, 0)
    await talk.log()


@CASES.of_both
async def initialise_with_the_own_epoch_twice(talk: Talk) -> None:
    who = await talk.init()
    await talk.init(who)
    await talk.init(who)


@CASES.of_both
async def initialise_with_the_epoch_before_a_commit(talk: Talk) -> None:
    who = await talk.open()
    await talk.end(who, True)
    await talk.init(who)


@CASES.of_both
async def initialise_with_an_old_epoch(talk: Talk) -> None:
    old = await talk.init()
    await talk.init()
    await talk.init()
    await talk.init(old)


@CASES.of_both
async def initialise_with_the_own_epoch_over_the_own_transaction(talk: Talk) -> None:
    who = await talk.open()
    await talk.init(who, once=True)
    await talk.state()
    await talk.init(who)
    await talk.log()


@CASES.of_both
async def initialise_with_an_old_epoch_over_a_transaction(talk: Talk) -> None:
    old = await talk.init()
    await talk.open()
    await talk.init(old, once=True)
    await talk.log()
