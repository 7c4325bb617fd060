"""Write a lost ledger again from an export: each record where it was, for generations are ledger offsets.

Where a run has begun a new ledger since the loss, that one is deleted, when it says nothing that would be lost with
it, as runs that were refused leave it. Close it, so that no run begins; end its writers; read it once more; keep what
goes over from it in a file; only then delete it. Whoever began in between finds records of which no ledger has a
receipt, and is refused.
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
from ferry.kafka.fetch.offsets import group_offsets
from ferry.kafka.produce.transactional_ids import transactional_ids
from ferry.lane.connections import TargetConnection
from ferry.lane.opening import driver_port
from ferry.ledger.rebuilt import Rebuild, Successor, rebuild_record
from ferry.model import Receipt, Record, TopicPartition
from ferry.plan.gather import position_of
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION
from ferry.protocol.names import DRIVER, position_group, transactional_id

_WINDOW = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A partition that was copied further than the export knows, by its position; both are source offsets."""

    target: TopicPartition
    exported: int
    copied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What was, or would be, written. `replaced` are records of a ledger that was begun since, `carried` are kept.

    `ahead` is what was copied after the export.
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
    told: Callable[[int, int], None] = lambda done, total: None,
) -> Rebuilt:
    """Write the ledger of an export again; nothing when `dry_run`, but all is checked.

    `told` hears how many offsets are written, of how many. The topic has settings with which no run begins until it
    is whole. Raises BadInput when the export is not whole or another flow's, Refused when it is another cluster's, or
    there is a ledger that is not lost, or says what a rebuild would lose.
    """
    contents = read_export(path, lines)
    with TargetConnection.of(flow, patience_s=patience_s) as connection:
        kept = CarriedFile(path, contents.head)
        work = _Rebuilding(
            flow=flow, connection=connection, path=path, lines=lines, contents=contents, who=who, kept=kept, told=told
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
    told: Callable[[int, int], None]

    def check_place(self) -> None:
        """Whether the export is of this ledger."""
        head, ledger, target = self.contents.head, self.connection.ledger, self.connection.target
        if head.topic != ledger.place.topic:
            raise BadInput(f"{self.path} is of ledger {head.topic}, flow {self.flow.flow} has {ledger.place.topic}")
        if head.cluster_id != (target.cluster_id or ""):
            raise Refused(
                f"{self.path} is of a ledger on cluster {head.cluster_id}, {self.flow.flow.target} is cluster "
                f"{target.cluster_id}: its receipts say nothing of the records there"
            )

    async def preview(self) -> Rebuilt:
        """What `write` would do, as far as it is to be seen now."""
        found = await self._successor()
        return await self._told(found, self._carried(found))

    async def write(self) -> Rebuilt:
        """Do it."""
        ledger, found, instead_of = self.connection.ledger, await self._successor(), ""
        carried = self._carried(found)
        if found is None:
            await self._end_writers(found)
        else:
            found, carried = await self._closed(found)
            instead_of = await ledger.delete()
        told = await self._told(found, carried)
        await ledger.create_unready(
            self.flow.ledger_replication_factor or DEFAULT_LEDGER_REPLICATION, instead_of=instead_of
        )
        at = 0
        for first, records in portions(self.path, self.lines):
            at = await self._append(first, records)
            self.told(at, self.contents.end.upto)
        mark = Rebuild(
            upto=self.contents.end.upto,
            who=self.who,
            at_ms=wall_ms(),
            file=self.path.name,
            digest=self.contents.end.digest,
            exported_at_ms=self.contents.head.at_ms,
            records=self.contents.records,
            replaced=told.replaced,
        )
        await self._append(at, [*carried, rebuild_record(mark)])
        self.kept.remove()  # before any run begins: a later rebuild must not bring back what was lifted since
        await ledger.make_ready()
        return told

    def _carried(self, found: Successor | None) -> list[Record]:
        """What goes behind the export: of the ledger that lies there, and of one that an earlier attempt deleted."""
        by_key = {one.key: one for one in self.kept.read()}
        for one in () if found is None else found.carried:
            by_key.pop(one.key, None)
            by_key[one.key] = one
        return list(by_key.values())

    async def _closed(self, found: Successor) -> tuple[Successor, list[Record]]:
        """What lies there when nobody writes to it any more, and what of it and before goes behind the export: kept."""
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
        """Write records that belong at `first` and behind; where the next one belongs."""
        ledger = self.connection.ledger
        offsets = await ledger.append_each(records)
        if offsets[0] != first or offsets[-1] != first + len(records) - 1:
            raise Refused(
                f"somebody else writes to ledger {ledger.place.topic} on cluster {self.flow.flow.target}: stop the "
                "flow, and rebuild again"
            )
        return first + len(records)

    async def _successor(self) -> Successor | None:
        """The ledger that lies there; Refused when it may not be replaced, None when there is none."""
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
                f"; the next run refuses then what was copied of {', '.join(sorted(found.topics))} by it, until these "
                "copies are deleted, too, and copied anew"
            )
        return (
            f"{where} was begun since, and says what {self.path} does not have: {found.evidence}. To do without, put "
            f"it aside with ferry ledger export '{self.flow.flow}' --to FILE, delete it with kafka-topics.sh "
            f"--bootstrap-server {address} --delete --topic {topic}, and rebuild again{again}"
        )

    async def _end_writers(self, found: Successor | None) -> None:
        """Fence every slot and driver that anybody knows of: a run that the loss left at work would write into it."""
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

    async def _told(self, found: Successor | None, carried: Collection[Record]) -> Rebuilt:
        return Rebuilt(
            records=self.contents.records,
            upto=self.contents.end.upto,
            replaced=0 if found is None else found.records,
            carried=len(carried),
            ahead=tuple(sorted(await self._ahead(self.contents.lasts), key=lambda one: one.target)),
        )

    async def _ahead(self, lasts: Collection[Receipt]) -> list[Ahead]:
        """What the lanes' positions say beyond the export. A position may be gone: then nothing is said."""
        found = []
        for lane in {last.lane for last in lasts}:
            mine = {last.target: last for last in lasts if last.lane == lane}
            words = await group_offsets(self.connection.target, position_group(self.flow.flow, lane), mine, wait=False)
            for place, word in words.items():
                position = None if word is None else position_of(*word)
                if position is not None and position.source_next > mine[place].end:
                    found.append(Ahead(target=place, exported=mine[place].end, copied=position.source_next))
        return found
