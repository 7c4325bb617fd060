"""Write a lost ledger again from an export: each record at its offset, because generations are ledger offsets.

If a run has begun a new ledger since the loss, that one is deleted, but only if no record in it would be lost. Refused
runs leave such a ledger. The rebuild closes it, so that no run begins, and fences its writers. It reads it once more,
and keeps the records that are carried over in a file. Only then it deletes the ledger. A run that began meanwhile finds
records without a receipt in any ledger, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, FerryError, Refused
from ferry.features.archive.acts.carried import CarriedFile
from ferry.features.archive.acts.exported import Beside, Contents, Lines, portions, read_export
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.kafka.produce.transactional_ids import transactional_ids
from ferry.lane.connections import TargetConnection
from ferry.lane.open_lane import driver_port
from ferry.ledger.rebuilt import Rebuild, Successor, rebuild_record
from ferry.model import Record, TopicPartition
from ferry.plan.gather import position_of
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION
from ferry.protocol.names import DRIVER, position_group, transactional_id

_WINDOW = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A partition that was copied further than the export shows, by its position; both are source offsets.

    `exported` is 0 if the export has nothing of it.
    """

    target: TopicPartition
    exported: int
    copied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was written, or would be.

    `replaced` are records of a ledger begun since; `carried` are the records that were kept. `ahead` is what was copied
    after the export.
    """

    records: int
    upto: int
    replaced: int
    carried: int
    ahead: tuple[Ahead, ...] = ()


def rebuild_ledger(
    flow: FlowConfig,
    path: Path,
    lines: Lines,
    *,
    who: str,
    dry_run: bool,
    patience_s: float = 60.0,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Rebuilt:
    """Write the ledger of an export again. With `dry_run` nothing is written, but all is checked.

    `on_progress` is called with how many offsets were written, and how many there are. Until the topic is complete, it
    has settings with which no run begins. Raises BadInput if the export is incomplete or of another flow. Raises
    Refused if it is of another cluster, or if the ledger exists and is not lost. Also if the ledger has records that a
    rebuild would lose.
    """
    contents = read_export(path, lines)
    with TargetConnection.of(flow, patience_s=patience_s) as connection:
        kept = CarriedFile(path, contents.head)
        work = _Rebuilding(
            flow=flow,
            connection=connection,
            path=path,
            lines=lines,
            contents=contents,
            who=who,
            kept=kept,
            on_progress=on_progress,
        )
        work.check_place()
        return connection.run(work.preview if dry_run else work.write)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rebuilding:
    flow: FlowConfig
    connection: TargetConnection
    path: Path
    lines: Lines
    contents: Contents
    who: str
    kept: CarriedFile
    on_progress: Callable[[int, int], None]

    def check_place(self) -> None:
        """Check that the export is of this ledger. Raises BadInput for another topic, Refused for another cluster."""
        head, ledger, target = self.contents.head, self.connection.ledger, self.connection.target
        if head.topic != ledger.place.topic:
            raise BadInput(f"{self.path} is of ledger {head.topic}, flow {self.flow.flow} has {ledger.place.topic}")
        if head.cluster_id != (target.cluster_id or ""):
            raise Refused(
                f"{self.path} is of a ledger on cluster {head.cluster_id}, {self.flow.flow.target} is cluster "
                f"{target.cluster_id}: its receipts say nothing of the records there"
            )

    async def preview(self) -> Rebuilt:
        """Return what `write` would do, as far as that can be seen now."""
        found = await self._successor()
        return await self._rebuilt(found, self._carried(found))

    async def write(self) -> Rebuilt:
        """Write the ledger, and return what was written."""
        ledger, found, instead_of = self.connection.ledger, await self._successor(), ""
        carried = self._carried(found)
        if found is None:
            await self._end_writers(found)
        else:
            found, carried = await self._closed(found)
            instead_of = await ledger.delete()
        rebuilt = await self._rebuilt(found, carried)
        await ledger.create_unready(
            self.flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION, instead_of=instead_of
        )
        at = 0
        for first, records in portions(self.path, self.lines):
            at = await self._append(first, records)
            self.on_progress(at, self.contents.end.upto)
        mark = Rebuild(
            upto=self.contents.end.upto,
            who=self.who,
            at_ms=wall_ms(),
            file=self.path.name,
            digest=self.contents.end.digest,
            exported_at_ms=self.contents.head.at_ms,
            records=self.contents.records,
            replaced=rebuilt.replaced,
        )
        await self._append(at, [*carried, rebuild_record(mark)])
        self.kept.remove()  # before any run begins: a later rebuild must not restore what was lifted since
        await ledger.make_ready()
        return rebuilt

    def _carried(self, found: Successor | None) -> list[Record]:
        """Return the records that follow the export.

        They are from the existing ledger, and from one that an earlier attempt deleted.
        """
        by_key = {one.key: one for one in self.kept.read()}
        for one in () if found is None else found.carried:
            by_key.pop(one.key, None)
            by_key[one.key] = one
        return list(by_key.values())

    async def _closed(self, found: Successor) -> tuple[Successor, list[Record]]:
        """Close the existing ledger.

        Return what is in it when no process writes to it any more, and the records to carry over. The latter are kept
        in the file.
        """
        ledger = self.connection.ledger
        was_ready = await ledger.is_ready()
        await ledger.make_unready()
        try:
            await self._end_writers(found)
            last = await self._successor() or found
            carried = self._carried(last)
            if carried:
                self.kept.write(carried)
        except FerryError:
            if was_ready:
                await ledger.make_ready()
            raise
        return last, carried

    async def _append(self, first: int, records: list[Record]) -> int:
        """Write records whose offsets begin at `first`; return the next offset.

        Raises Refused if another process writes, too.
        """
        ledger = self.connection.ledger
        offsets = await ledger.append_each(records)
        if offsets[0] != first or offsets[-1] != first + len(records) - 1:
            raise Refused(
                f"another client writes to ledger {ledger.place.topic} on cluster {self.flow.flow.target}: stop the "
                "flow, and rebuild again"
            )
        return first + len(records)

    async def _successor(self) -> Successor | None:
        """Return the existing ledger; None if there is none. Raises Refused if it must not be replaced."""
        ledger = self.connection.ledger
        if not await ledger.exists():
            return None
        found, beside = Successor(lanes=self.contents.lanes), Beside(self.path, self.lines)
        at, end = await ledger.start(), await ledger.end()
        while at < end:
            records, at = await ledger.read(at, min(end, at + _WINDOW))
            for record in records:
                found.take(record, exported=beside.has(record))
        where = f"ledger {ledger.place.topic} on cluster {self.flow.flow.target}"
        if found.is_exported and await ledger.is_ready():
            raise Refused(f"there is a ledger: {where} is the one that {self.path} was exported from, and is not lost")
        if found.evidence:
            raise Refused(self._contradiction(where, found))
        return found

    def _contradiction(self, where: str, found: Successor) -> str:
        address, topic = ",".join(self.connection.target.addresses), self.connection.ledger.place.topic
        again = ""
        if found.topics:
            again = (
                f"; the next run then refuses {', '.join(sorted(found.topics))}, until these copies are deleted, too, "
                "and copied again"
            )
        return (
            f"{where} was begun since, and says what {self.path} does not have: {found.evidence}. To do without, put "
            f"it aside with ferry ledger export '{self.flow.flow}' --output FILE, delete it with kafka-topics.sh "
            f"--bootstrap-server {address} --delete --topic {topic}, and rebuild again{again}"
        )

    async def _end_writers(self, found: Successor | None) -> None:
        """Fence all known slots and drivers: a run that was active at the loss would write to the new ledger."""
        slots, flows = dict(self.contents.slots), {self.flow.flow, *self.contents.flows}
        if found is not None:
            flows |= found.flows
            for lane, count in found.slots.items():
                slots[lane] = max(slots.get(lane, 0), count)
        for flow in flows:
            begins = f"ferry.{flow}."
            for name in await transactional_ids(self.connection.target, begins):
                lane, _, writer = name.removeprefix(begins).rpartition(".")
                if lane and (writer == DRIVER or writer.isdecimal()) and name == transactional_id(flow, lane, writer):
                    count = int(writer) + 1 if writer.isdecimal() else 0
                    slots[lane] = max(slots.get(lane, 0), count)
        for lane, count in sorted(slots.items()):
            port = driver_port(self.flow, lane, self.connection.ledger)
            await port.fence(count, flows)
            await port.initialise()

    async def _rebuilt(self, found: Successor | None, carried: Collection[Record]) -> Rebuilt:
        return Rebuilt(
            records=self.contents.records,
            upto=self.contents.end.upto,
            replaced=0 if found is None else found.records,
            carried=len(carried),
            ahead=tuple(sorted(await self._ahead(), key=lambda one: one.target)),
        )

    async def _ahead(self) -> list[Ahead]:
        """Return what was copied after the export, by the lanes' positions: also by lanes that began after it.

        A lane without positions has nothing here. Raises Refused if positions may not be read.
        """
        target, exported = self.connection.target, dict[str, dict[TopicPartition, int]]()
        for lane in {self.flow.lane, *await self._lanes_with_positions()}:
            exported[position_group(self.flow.flow, lane)] = {}
        for last in self.contents.lasts:
            exported.setdefault(position_group(self.flow.flow, last.lane), {})[last.target] = last.end
        # An answer about all partitions leaves out topics that the login may not describe, without an error.
        named = await fetch_offsets(
            target, {group: ends.keys() for group, ends in exported.items() if ends}, stable=False
        )
        every = await fetch_offsets(target, dict.fromkeys(exported), stable=False)
        for error in (*named.failed.values(), *every.failed.values()):
            raise error
        for group, topics in named.denied.items():
            raise Refused(
                f"offsets of group {group} on {', '.join(sorted(topics))} are hidden on cluster {target.alias}: grant "
                "DESCRIBE on the topic"
            )
        found = []
        for group, ends in exported.items():
            for place, at in (named.found.get(group, {}) | every.found.get(group, {})).items():
                copied = position_of(at.offset, at.metadata).source_next or 0
                if copied > ends.get(place, 0):
                    found.append(Ahead(target=place, exported=ends.get(place, 0), copied=copied))
        return found

    async def _lanes_with_positions(self) -> set[str]:
        """Return the lanes of the flow whose position groups exist. Raises Refused if a broker does not list its."""
        target, begins = self.connection.target, position_group(self.flow.flow, "")
        listed = await list_groups(target)
        listed.refuse_silent(target.alias)
        return {name.removeprefix(begins) for name in listed.groups if name.startswith(begins)}
