"""Write a lost ledger again from an export: each record where it was, for generations are ledger offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ferry.config.flow import FlowConfig
from ferry.decide.ledger.codec import decode_key, decode_value, encode
from ferry.decide.ledger.export import ExportHead, parse_head, parse_records
from ferry.decide.ledger.receipt_codec import parse_receipt
from ferry.errors import BadInput, Refused
from ferry.model import Receipt, Record, TopicPartition
from ferry.net.offsets import group_offsets
from ferry.run.copy.kafka_port import position_group
from ferry.run.flow.connections import TargetConnection
from ferry.run.plan.gather import position_of
from ferry.run.plan.planner import DEFAULT_LEDGER_REPLICATION

FILLER = Record(key=encode(["filler"]), value=None)
"""What lies where the lost ledger had a marker, or nothing any more: a tombstone of a key that means nothing."""

Lines = Callable[[Path], Iterator[bytes]]
"""Reads an export, whatever its format."""

_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A partition that was copied further than the export knows, by its position; both are source offsets."""

    target: TopicPartition
    exported: int
    copied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What an export holds, and up to which ledger offset; `ahead` is what was copied after it."""

    head: ExportHead
    records: int
    upto: int
    lasts: tuple[Receipt, ...]
    ahead: tuple[Ahead, ...] = ()


def rebuild_ledger(flow: FlowConfig, path: Path, lines: Lines, *, dry_run: bool, patience_s: float = 60.0) -> Rebuilt:
    """Write the ledger of an export into a topic that is not there; nothing when `dry_run`, but all is checked.

    The topic has settings with which no run begins until it is whole. Raises BadInput when the export is not whole or
    another flow's, Refused when it is another cluster's, or there is a ledger.
    """
    found = checked(path, lines)
    with TargetConnection.of(flow, patience_s=patience_s) as connection:
        ledger = connection.ledger
        if found.head.topic != ledger.place.topic:
            raise BadInput(f"{path} is of ledger {found.head.topic}, flow {flow.flow} has {ledger.place.topic}")
        if found.head.cluster_id != (connection.target.cluster_id or ""):
            raise Refused(
                f"{path} is of a ledger on cluster {found.head.cluster_id}, {flow.flow.target} is cluster "
                f"{connection.target.cluster_id}: its receipts say nothing of the records there"
            )

        async def work() -> Rebuilt:
            if await ledger.exists():
                raise Refused(
                    f"there is a ledger {ledger.place.topic} on cluster {flow.flow.target}: a lost one alone is "
                    "rebuilt; one that a rebuild left unfinished is to be deleted first"
                )
            whole = replace(found, ahead=tuple(sorted(await _ahead(flow, connection, found.lasts), key=_place)))
            if dry_run:
                return whole
            await ledger.create_unready(flow.ledger_replication_factor or DEFAULT_LEDGER_REPLICATION)
            at = 0
            for first, records in _portions(path, lines, found.upto):
                offsets = await ledger.append_each(records)
                if first != at or offsets[-1] != at + len(records) - 1:
                    raise Refused(
                        f"somebody else writes to ledger {ledger.place.topic} on cluster {flow.flow.target}: stop the "
                        "flow, delete the topic, rebuild again"
                    )
                at += len(records)
            await ledger.make_ready()
            return whole

        return connection.run(work)


async def _ahead(flow: FlowConfig, connection: TargetConnection, lasts: Collection[Receipt]) -> list[Ahead]:
    """What the lanes' positions say beyond the export. A position may be gone: then nothing is said."""
    found = []
    for lane in {last.lane for last in lasts}:
        mine = {last.target: last for last in lasts if last.lane == lane}
        words = await group_offsets(connection.target, position_group(flow.flow, lane), mine, wait=False)
        for place, word in words.items():
            position = None if word is None else position_of(*word)
            if position is not None and position.source_next > mine[place].end:
                found.append(Ahead(target=place, exported=mine[place].end, copied=position.source_next))
    return found


def _place(one: Ahead) -> TopicPartition:
    return one.target


def checked(path: Path, lines: Lines) -> Rebuilt:
    """What an export holds, all of which was read; BadInput when it is not whole."""
    head = parse_head(next(lines(path), b""), str(path))
    records = upto = 0
    lasts: dict[bytes, Receipt] = {}
    for one in parse_records(lines(path), str(path)):
        if isinstance(one, int):
            upto = one
        else:
            records += 1
            if decode_key(one.record.key)[:1] == ["last"]:
                lasts.pop(one.record.key, None)
                if one.record.value is not None:
                    body = decode_value(one.record.value, f"{path}, ledger offset {one.offset}")
                    lasts[one.record.key] = parse_receipt(body)
    return Rebuilt(head=head, records=records, upto=upto, lasts=tuple(lasts.values()))


def _portions(path: Path, lines: Lines, upto: int) -> Iterator[tuple[int, list[Record]]]:
    """All offsets before `upto`, some at a time: the records that were there, and fillers."""
    first, portion = 0, list[Record]()
    for one in parse_records(lines(path), str(path)):
        offset = upto if isinstance(one, int) else one.offset
        while first + len(portion) < offset:
            portion.append(FILLER)
            if len(portion) == _AT_ONCE:
                yield first, portion
                first, portion = first + len(portion), []
        if not isinstance(one, int):
            portion.append(one.record)
        if len(portion) >= _AT_ONCE:
            yield first, portion
            first, portion = first + len(portion), []
    if portion:
        yield first, portion
