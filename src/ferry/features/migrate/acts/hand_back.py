"""Hand a flow back to MirrorMaker 2: write the lane's positions into the topic that its workers read when they start.

A hand-back is a run that copies nothing. It fences all writers of the lane before it reads the positions, so none of
them copies further than what is handed back. The flow is paused as well, because a schedule may still start runs.

The order counts, because no fence covers MirrorMaker 2's topic, or the file that takes its place:

1. The pause is committed by the run's driver. It says that the positions are not written yet.
2. The ledger is read once more. If a newer run has opened the lane, or the flow was resumed, no position is written.
3. The positions are written, to the topic or the file.
4. The pause says that the flow is handed back.

A hand-back that dies in between leaves a paused flow, and can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused, Superseded
from ferry.features.identical.rules.written import refuse_written
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.migrate.acts.at_rest import (
    Mm2Place,
    copies_of,
    refuse_moving_mm2,
    refuse_running_mm2,
    refuse_undecided,
)
from ferry.features.migrate.rules.connect_offsets import ConnectorOffsets, connector_offsets
from ferry.features.migrate.rules.hand_back import (
    Handed,
    HandedRow,
    hand_back_rows,
    pause_with,
    pause_without,
    position_records,
)
from ferry.features.migrate.rules.wanted import refuse_unknown_topics
from ferry.files import new_file
from ferry.kafka.fetch.whole_topic import read_topic
from ferry.kafka.produce.appending import Appender
from ferry.kafka.produce.internal_topic import InternalTopic
from ferry.lane.open_lane import OpenLane
from ferry.ledger.codec import pause_record
from ferry.ledger.deployments import admitted
from ferry.ledger.ledger import LedgerView, fold, overwritten, pauses
from ferry.messages.catalogue import sentence
from ferry.model import Origin, Pause, Plan, Record, TopicPartition, sentence_of, with_text
from ferry.plan.gather import Positions
from ferry.plan.gather_all import gather_all
from ferry.plan.options import RunOptions, rules_of
from ferry.plan.rules.skipping import idle_plan, refuse_while_at_work
from ferry.protocol.driver import Driver, fence_and_seal
from ferry.run.micro_run import MicroRuns
from ferry.wire.partitioner import partition_of_key

_OFFSETS_PARTITIONS, _OFFSETS_REPLICAS = 25, 3
"""The partitions and replicas of an offsets topic that Kafka Connect creates by default (`DistributedConfig`)."""

_FOR_TOOLS = 0o666
"""The mode of a file of positions, which holds no secret; the umask narrows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandBackOptions:
    """Who hands back, of which topics (None: all). `output`: the new file for the positions, in place of the topic.

    `create`: the offsets topic is created if there is none, for a MirrorMaker 2 that was not started yet.
    """

    who: str
    only: frozenset[str] | None = None
    output: Path | None = None
    create: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedBack:
    """What was handed back, or would be; `records` are those for the offsets topic."""

    rows: tuple[HandedRow, ...]
    records: tuple[Record, ...]
    notes: tuple[str, ...]
    pauses: bool
    """Whether the flow is paused with it: not where only some topics are named, or nothing is handed back."""


def preview_hand_back(runs: MicroRuns, place: Mm2Place, options: HandBackOptions) -> HandedBack:
    """Return what would be handed back now; writes nothing. Raises BadInput if the flow never ran."""
    _refuse_identical(runs)

    async def work(lane: OpenLane, view: LedgerView) -> HandedBack:
        refuse_written(view, lane.flow, "ferry migrate hand-back")
        return (await _decide(lane, view, place, options, watch=True))[0]

    return runs.act(work, ran=True)


def hand_back(runs: MicroRuns, place: Mm2Place, options: HandBackOptions, run: str, origin: Origin) -> HandedBack:
    """Write the lane's positions into MirrorMaker 2's offsets topic, and pause the flow, in a run of its own.

    Raises Refused while a run of the lane is active, or MirrorMaker 2 runs. Raises BadInput if MirrorMaker 2 has no
    offsets topic, or if the flow never ran. With some topics only, the flow is not paused.
    """
    _refuse_identical(runs)
    return runs.act(lambda lane, view: _hand_back(lane, view, place, options, run, origin), ran=True)


def _refuse_identical(runs: MicroRuns) -> None:
    """Raise Refused if records keep their offsets: MirrorMaker 2 would give others to what it copies next."""
    runs.flow.of(IdenticalSettings).refuse(runs.flow, "ferry migrate hand-back")


async def _hand_back(
    lane: OpenLane, view: LedgerView, place: Mm2Place, options: HandBackOptions, run: str, origin: Origin
) -> HandedBack:
    refuse_written(view, lane.flow, "ferry migrate hand-back")
    refuse_while_at_work(await lane.with_newest(view), lane.name)
    await _decide(lane, view, place, options, watch=True)
    record = admitted(view, lane.record(run, origin), take_over=False)
    done: list[tuple[HandedBack, ConnectorOffsets, int]] = []

    async def decide(driver: Driver) -> Plan:
        lane.cache.learn(driver.view, driver.read_ms)
        found, theirs = await _decide(lane, driver.view, place, options, watch=False)
        done.append((found, theirs, driver.view.end))
        if found.pauses:
            held = pauses(driver.view, wall_ms()).get("")
            driver.keep([pause_record(pause_with(held, options.who, run, record.started_ms, written=False))])
        note = sentence(
            "run.handed-back", positions=len(found.records), topic=place.offsets_topic, connector=place.connector
        )
        return replace(idle_plan(driver.opened), notes=(note,))

    driver = (await fence_and_seal(lane.driver_port(), record, decide, view)).driver
    lane.cache.learn(driver.view, driver.read_ms)  # it has the pause
    found, theirs, read_to = done[-1]
    pause = _KeptPause(lane=lane, driver=driver, who=options.who) if found.pauses else None
    if pause is not None:
        await pause.keep_meanwhile(read_to)
    last_look = partial(_last_look, lane, driver, pause)
    if options.output is not None:
        await last_look()
        _write_file(options.output, found.records)
    elif found.records:
        await _write(lane, place.offsets_topic, found, theirs, last_look)
    if pause is not None:
        await pause.say_written()
    return found


async def _last_look(lane: OpenLane, driver: Driver, pause: _KeptPause | None) -> None:
    """Raise Superseded or Refused if MirrorMaker 2 must not get the positions: the flow may copy further.

    Call it before each write: no fence covers MirrorMaker 2's topic, or a file.
    """
    flow = lane.flow.flow
    try:
        await driver.refuse_superseded()
    except Superseded as error:
        again = "not all positions are written" + (f", and {flow} stays paused" if pause is not None else "")
        said = with_text(sentence_of(error), f"{error}, then hand {flow} back again: {again}")
        raise Superseded(said) from error
    if pause is not None and await pause.now() is None:
        raise Refused(
            f"flow {flow} was resumed while run {driver.opened.record.run} handed it back: not all positions are "
            "written, so keep MirrorMaker 2 stopped, or hand the flow back again"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptPause:
    """The pause that the driver of a hand-back has committed, and what operators do to it meanwhile."""

    lane: OpenLane
    driver: Driver
    who: str

    async def now(self) -> Pause | None:
        """Return the flow's pause as it is in the ledger now."""
        return pauses(await self.lane.cache.view(), wall_ms()).get("")

    async def keep_meanwhile(self, read_to: int) -> None:
        """Write the hand-back's pause again with the one that an operator set after the offset `read_to` was read."""
        end = self.driver.view.end
        since = await self.lane.ledger.read_untransacted(read_to, end)
        if held := pauses(fold(since, end), wall_ms()).get(""):
            await self._append(held, end, written=False)

    async def say_written(self) -> None:
        """Have the pause say that the flow is handed back; one that an operator has set meanwhile stays in it."""
        view = await self.lane.cache.view()
        if held := pauses(view, wall_ms()).get(""):
            await self._append(held, view.end, written=True)

    async def _append(self, held: Pause, read_to: int, *, written: bool) -> None:
        """Write the pause `held` with the hand-back's. What others wrote since `read_to` is written again."""
        record = self.driver.opened.record
        own = pause_record(pause_with(held, self.who, record.run, record.started_ms, written=written))
        at = await self.lane.ledger.append([own])
        if others := overwritten(await self.lane.ledger.read_untransacted(read_to, at), [own]):
            await self.lane.ledger.append(others)


async def _decide(
    lane: OpenLane, view: LedgerView, place: Mm2Place, options: HandBackOptions, *, watch: bool
) -> tuple[HandedBack, ConnectorOffsets]:
    flow, target = lane.flow, lane.target
    facts = await gather_all(lane, view, Positions.NONE)
    rules = rules_of(flow, lane.name, RunOptions(only=options.only))
    refuse_unknown_topics(rules, facts.source)
    records = await read_topic(target, place.offsets_topic)
    notes: list[str] = []
    if records is None and options.output is None:
        missing = f"there is no topic {place.offsets_topic} on cluster {target.alias}"
        if not options.create:
            raise BadInput(
                f"{missing}: name MirrorMaker 2's offset.storage.topic with --offsets-topic; or, when it was never "
                "started there, have the topic created with --create; or write the positions to a file with --output"
            )
        notes.append(f"{missing}: it is created, with {_OFFSETS_PARTITIONS} partitions, as Kafka Connect does it")
    if records is not None or options.create:
        notes += await refuse_running_mm2(target, place)
        if watch:
            await refuse_moving_mm2(flow, target, place, copies_of(flow, facts))
    theirs = connector_offsets(records or (), place.connector, flow.flow.source, place.offsets_topic)
    refuse_undecided(target, place, theirs)
    rows = hand_back_rows(rules, facts, theirs)
    if theirs.next_offsets and not any(row.was >= 0 for row in rows):
        notes.append(
            f"{place.offsets_topic} has positions of {place.connector}, but none of a topic that is handed back"
        )
    made = position_records(rows, theirs, place.connector, flow.flow.source)
    stops = bool(made) and options.only is None
    held = facts.lane.pauses.get("") if stops else None
    left = None if held is None else pause_without(held)
    if left is not None:
        notes.append(
            f"flow {flow.flow} is paused by {left.who} ({left.why}): that pause stays after ferry migrate, until ferry "
            "resume"
        )
    return HandedBack(rows=tuple(rows), records=tuple(made), notes=tuple(notes), pauses=stops), theirs


def _write_file(path: Path, records: Sequence[Record]) -> None:
    """Write one JSON object with key and value per line: all lines or none. Raises BadInput if it cannot be written."""
    with new_file(path, mode=_FOR_TOOLS, name=f"--output {path}") as file:
        for record in records:
            line = {"key": json.loads(record.key), "value": json.loads(record.value or b"null")}
            file.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode())


async def _write(
    lane: OpenLane,
    name: str,
    found: HandedBack,
    theirs: ConnectorOffsets,
    last_look: Callable[[], Awaitable[None]],
) -> None:
    """Append each record to the partition that has its key already. If there is no topic, create it first.

    A new key goes to the partition that Kafka's own producer chooses.
    """
    target = lane.target
    await last_look()
    if name not in await target.refresh([name]):
        await InternalTopic(target, name, partitions=_OFFSETS_PARTITIONS).create(_OFFSETS_REPLICAS)
        await last_look()
    sources = [row.source for row in found.rows if row.verdict is Handed.WRITE]
    count = len(target.topics[name].partitions)
    parts: dict[int, list[Record]] = {}
    for source, record in zip(sources, found.records, strict=True):
        number = theirs.partitions.get(source, partition_of_key(record.key, count))
        parts.setdefault(number, []).append(record)
    for number, records in sorted(parts.items()):
        await Appender(target, TopicPartition(topic=name, partition=number), "topic").append(records)
