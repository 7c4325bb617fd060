"""Records that a switch left on the old primary: produced there and never copied.

They are counted, and written to a file. The file has one JSON object a line, with topic, partition, offset, timestamp,
key, value and headers. Bytes that are not UTF-8 are in base64, under `key_base64`, `value_base64`, `name_base64`. A
batch that cannot be opened has a line of its own, with its unchanged bytes under `batch_base64`; no record of it has
another line.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Refused
from ferry.features.switch.acts.old_primary import OldPrimary, forward_view, look_at_old_primary, refuse_lacking
from ferry.features.switch.acts.partition_state import takes
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.beginning import Looked
from ferry.features.switch.rules.old_primary import LACK, lacks_clause
from ferry.files import PRIVATE, draft, sync_folder
from ferry.kafka.fetch.committed import ReadRecord, UnopenedBatch, read_committed
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.behind import others_transactions
from ferry.lane.connections import FlowConnections
from ferry.lane.target_cuts import target_cuts
from ferry.ledger.other_flows import gaps, ranges, uncut
from ferry.ledger.receipts import last_receipts, open_receipts
from ferry.messages.refusals import open_sentence
from ferry.model import Range, TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState
from ferry.plan.rules.left_out import is_earlier
from ferry.protocol.names import transactional_id
from ferry.words import count_of

_NAMED = 20
"""How many batches of a partition that cannot be opened the evidence names; the file has all."""


def export_path(state: SwitchState) -> Path:
    """Return the path of the file with stranded records."""
    return Path(state.switch.options.export or f"ferry-stranded-{state.switch.id}.jsonl")


def refuse_unwritable(state: SwitchState) -> None:
    """Raise BadInput if the file cannot be written, or if it exists before the switch has begun to write it."""
    path = export_path(state)
    if os.path.lexists(path) and Step.STRANDED not in {*state.begun, *state.done}:
        raise BadInput(f"{path} is there already: name another file with --output, stranded records replace nothing")
    folder = path.absolute().parent
    try:
        with draft(path):
            pass
    except OSError as error:
        raise BadInput(
            f"{folder} cannot be written ({error.strerror}), where stranded records would go: name another file with "
            "--output"
        ) from None


def export_stranded(sides: Sides, state: SwitchState, *, patience_s: float) -> Evidence:
    """Find and export the records that `named` never copied. The file is written as a whole, and again after a kill.

    Raises BadInput if the file cannot be written, Refused if a partition does not answer.
    """
    if sides.back is None:
        raise Refused(f"the file has no flow {sides.named}: add it again")
    forward = sides.back  # in a failback, `back` is the flow that the operator named
    view = forward_view(forward, patience_s=patience_s)
    path = export_path(state)
    with FlowConnections.of(sides.via, patience_s=patience_s) as connections:

        async def work() -> tuple[list[dict[str, Any]], str, dict[TopicPartition, int], OldPrimary]:
            old = await look_at_old_primary(forward, view, connections.target, connections.source)
            refuse_lacking(forward, old)
            ends = await _decided_ends(forward, sides.via, connections)
            parts = await _left_behind(sides.via, connections, old, ends)
            return *await write_stranded(connections, parts, path, ends), ends, old

        found, digest, ends, old = connections.run(work)
    records, unopened = (sum(row[name] for row in found) for name in ("records", "unopened"))
    where = f", written to {path}" if found else ""
    if unopened:
        where += (
            f"; {unopened} batches could not be opened, their bytes are in the file (batch_base64, with why): how many "
            "committed records they hold is not known"
        )
    lacking = lacks_clause(old.lacks, sides.new)
    return Evidence(
        sentence=f"left on {sides.new} and never copied: {count_of(records, 'record')} of "
        f"{count_of(len(found), 'partition')}{where}{lacking and f'; {lacking}'}",
        facts={
            "records": records,
            "unopened": unopened,
            "file": str(path.absolute()) if found else None,
            "sha256": digest,
            "lacks": list(map(LACK.dump, old.lacks)),
        },
        rows=tuple({**row, "topic_id": old.ids.get(row["topic"], "")} for row in (*found, *_rest(found, ends))),
    )


def _rest(found: Iterable[Mapping[str, Any]], ends: Mapping[TopicPartition, int]) -> list[dict[str, Any]]:
    """Make the rows of the partitions in which nothing was left, with the offset up to which they were searched."""
    left = {TopicPartition(topic=row["topic"], partition=row["partition"]) for row in found}
    return [
        {**_place(place), "start": end, "end": end, "records": 0, "unopened": 0, "looked_to": end}
        for place, end in sorted(ends.items())
        if place not in left
    ]


def looked_to(state: SwitchState) -> Looked:
    """Return up to where the step `stranded` searched: what came later was neither counted nor written to the file."""
    rows = [row for row in state.rows(Step.STRANDED) if "looked_to" in row]  # an earlier Ferry did not record it
    return Looked(
        ends={TopicPartition(topic=row["topic"], partition=row["partition"]): row["looked_to"] for row in rows},
        ids={row["topic"]: row.get("topic_id", "") for row in rows},
    )


async def _decided_ends(
    forward: FlowConfig, via: FlowConfig, connections: FlowConnections
) -> dict[TopicPartition, int]:
    """Return the ends of the old primary's partitions when all transactions before them are decided.

    After the beginning of an open transaction, records of other producers are hidden from readers, but not lost. Raises
    Refused at once if the transaction belongs to another producer, else after the cluster's patience. Raises Refused,
    too, for a partition that does not answer.
    """
    primary = connections.target
    names = [info for name, info in (await primary.refresh(None)).items() if takes(forward, name)]
    places = [TopicPartition(topic=info.name, partition=number) for info in names for number in info.partitions]
    if not places:
        return {}
    writers = {transactional_id(via.flow, via.lane, slot) for slot in range(via.slots)}
    until = time.monotonic() + primary.patience_s
    while True:
        # The stable ends are read after the others: one that is not lower has no open transaction before it.
        ends = await listed_offsets(primary, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)
        stable = await listed_offsets(primary, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
        for place in places:
            if place not in ends.found or place not in stable.found:
                why = {**stable.failed, **ends.failed}.get(place)
                raise Refused(
                    f"{place} on cluster {primary.alias} does not report what it holds, "
                    f"{'it has no leader: bring its brokers back' if why is None else why.why}"
                )
        held = {place: stable.found[place] for place in places if stable.found[place] < ends.found[place]}
        if not held:
            return ends.found
        others = await others_transactions(primary, held, ends.found, writers)
        named = {place: one for place, one in others.items() if one.producer_id >= 0}
        if named:
            place, one = min(named.items())
            raise Refused(
                f"what was left on {primary.alias} cannot be counted yet: {open_sentence(str(place), place, one)}; "
                "then continue"
            )
        if time.monotonic() > until:
            raise Refused(
                f"what was left on {primary.alias} cannot be counted yet: a transaction is open on {min(held)}, from "
                f"offset {held[min(held)]} on, and its producer is not known: wait for its end, or find it with "
                "kafka-transactions.sh find-hanging, then continue"
            )
        await connections.loop.sleep(0.2)  # it is the flow back's own, or one that has just ended


async def _left_behind(
    via: FlowConfig, connections: FlowConnections, old: OldPrimary, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, list[Range]]:
    """Return the ranges on the old primary that were not copied, and that did not come from the other cluster."""
    if not ends:
        return {}
    primary = connections.target
    starts = await listed_offsets(primary, dict.fromkeys(ends, EARLIEST), isolation=READ_UNCOMMITTED)
    for place, why in starts.failed.items():
        raise Refused(f"{place} on cluster {primary.alias} does not report what it holds, {why.why}")
    came: Mapping[TopicPartition, tuple[Range, ...]] = {}
    if await connections.has_ledger():
        back = await connections.view()
        now = {name: info.id_text for name, info in primary.topics.items()}
        rows = await connections.cache.rows(
            back, lambda of: of.lane == via.lane and not is_earlier(of.target.topic, of.target_topic_id, now)
        )
        cuts = await target_cuts(primary, last_receipts(back, via.lane).values())
        came = uncut(ranges(rows, open_receipts(back, via.lane)), cuts)  # from a cut on others wrote what is there
    found = {}
    for place, end in ends.items():
        begin = max(old.reached.get(place, 0), starts.found.get(place, 0))
        if begin < end and (left := gaps(came.get(place, ()), begin, end)):
            found[place] = left
    return found


async def write_stranded(
    connections: FlowConnections,
    parts: Mapping[TopicPartition, Iterable[Range]],
    path: Path,
    ends: Mapping[TopicPartition, int],
) -> tuple[list[dict[str, Any]], str]:
    """Write the stranded records of the given ranges to a file; return a row for each partition, and the digest.

    The file and its name are on the disk before the step can be recorded as done. No row: there is no file.
    """
    digest = hashlib.sha256()
    rows: list[dict[str, Any]] = []
    try:
        with draft(path) as (file, made):  # it holds keys and values

            def write(body: Mapping[str, Any]) -> None:
                line = json.dumps(body, ensure_ascii=False).encode() + b"\n"
                digest.update(line)
                file.write(line)

            for place, left in sorted(parts.items()):
                found = _Found(place=place, write=write)
                for start, end in left:
                    await read_committed(connections.target, place, start, end, found.take, found.keep)
                rows += found.rows(looked_to=ends[place])
            file.flush()
            os.fsync(file.fileno())
            if rows:
                _refuse_other(path, digest.hexdigest())
                made.replace(path)
                sync_folder(path.parent)
    except OSError as error:
        raise BadInput(f"{path} cannot be written ({error.strerror}): name another file with --output") from None
    return rows, digest.hexdigest() if rows else ""


def _refuse_other(path: Path, digest: str) -> None:
    """Create the file's name. Raises BadInput if there is a file with other content.

    The path comes from the ledger, and a path from the ledger must not destroy data. A file with the same content, or
    an empty one, is from an attempt that was killed before the step was recorded.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE)
    except FileExistsError:
        is_same = not path.is_symlink() and path.is_file()
        if is_same and path.stat().st_size:
            with path.open("rb") as file:
                is_same = hashlib.file_digest(file, "sha256").hexdigest() == digest
        if not is_same:
            raise BadInput(
                f"{path} is there already with other content: stranded records replace nothing, move it away, then "
                "continue"
            ) from None
    else:
        os.close(descriptor)


@dataclass(slots=True, kw_only=True)
class _Found:
    """The records and batches that were left in one partition, each written as a line."""

    place: TopicPartition
    write: Callable[[Mapping[str, Any]], None]
    _start: int | None = None
    _end: int = 0
    _records: int = 0
    _unopened: dict[int, UnopenedBatch] = field(default_factory=dict)
    """Batches that were not opened, by offset. The first `_NAMED` are named in the evidence."""

    def take(self, record: ReadRecord) -> None:
        self.write(record_json(self.place, record))
        self._records += 1
        self._reach(record.offset, record.offset + 1)

    def keep(self, batch: UnopenedBatch) -> None:
        """Write a batch only once: it is in two ranges if records between them came from the other cluster."""
        if batch.offset not in self._unopened:
            self.write(unopened_json(self.place, batch))
            self._unopened[batch.offset] = replace(batch, data=b"")
            self._reach(batch.offset, batch.end)

    def _reach(self, start: int, end: int) -> None:
        self._start = start if self._start is None else min(self._start, start)
        self._end = max(self._end, end)

    def rows(self, *, looked_to: int) -> list[dict[str, Any]]:
        """Return the row of the evidence; empty if nothing was left."""
        if self._start is None:
            return []
        counts = {"records": self._records, "unopened": len(self._unopened)}
        row = {**_place(self.place), "start": self._start, "end": self._end, **counts, "looked_to": looked_to}
        named = [{"offset": one.offset, "end": one.end, "why": one.why} for one in self._unopened.values()]
        return [{**row, "batches": named[:_NAMED]} if named else row]


def _place(place: TopicPartition) -> dict[str, Any]:
    return {"topic": place.topic, "partition": place.partition}


def unopened_json(place: TopicPartition, batch: UnopenedBatch) -> dict[str, Any]:
    """Return the line of a batch that cannot be opened."""
    data = base64.b64encode(batch.data).decode()
    return {**_place(place), "offset": batch.offset, "end": batch.end, "batch_base64": data, "why": batch.why}


def record_json(place: TopicPartition, record: ReadRecord) -> dict[str, Any]:
    """Return the line of a record."""
    return {
        **_place(place),
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_field("key", record.key),
        **_field("value", record.value),
        "headers": [{**_field("name", name), **_field("value", value)} for name, value in record.headers],
    }


def _field(name: str, content: bytes | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(content).decode()}
