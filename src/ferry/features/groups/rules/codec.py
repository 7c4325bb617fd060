"""The ledger's records of consumer groups.

```
["group", lane, group]                 what Ferry is about to write, by target partition; before each write
["offsets", lane, snapshot, group]     the offsets of a group on the target, and what was written over them
["snapshot", lane, snapshot]           names a snapshot; the records of its groups are before it
```

A snapshot has the name that an operator gave it, or the id of the run that wrote offsets. In the second case it holds
what was there before the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from ferry.codec.form import F, Form
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.ledger.codec import LEDGER_VERSION, Json, encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import checked, read_as, text, whole
from ferry.model import CommittedOffset, Record, TopicPartition


def group_record(lane: str, group: str, held: HeldGroup, *, run: str, at_ms: int) -> Record:
    """Make the record of what Ferry is about to write for a group, with all that it wrote before.

    If there is nothing, the record is a tombstone.
    """
    key = encode(["group", lane, group])
    if not held.offsets:
        return Record(key=key, value=None)
    topics: dict[str, list[list[int]]] = {}
    for place, one in held.offsets.items():
        row = [place.partition, one.wrote.source, one.wrote.target]
        if one.prior is not None:
            row += [one.prior.source, one.prior.target]
        topics.setdefault(place.topic, []).append(row)
    body = {
        "v": LEDGER_VERSION,
        "kind": "group",
        "run": run,
        "at_ms": at_ms,
        "renewed_ms": held.renewed_ms,
        "topics": [
            {
                "topic": held.sources.get(topic, ""),
                "target_topic": topic,
                "offsets": rows,
                **({"read": list(held.read[topic])} if topic in held.read else {}),
            }
            for topic, rows in sorted(topics.items())
        ],
    }
    return Record(key=key, value=encode(body))


def parse_group(body: Json) -> HeldGroup:
    """Read the value that `group_record` made."""
    offsets: dict[TopicPartition, Held] = {}
    for topic in body["topics"]:
        name = topic["target_topic"]
        for partition, source, target, *prior in topic["offsets"]:
            offsets[TopicPartition(name, partition)] = Held(Wrote(source, target), Wrote(*prior) if prior else None)
    return HeldGroup(
        offsets=offsets,
        sources={topic["target_topic"]: topic["topic"] for topic in body["topics"]},
        renewed_ms=body["renewed_ms"],
        read={topic["target_topic"]: tuple(topic["read"]) for topic in body["topics"] if "read" in topic},
    )


def held_groups(view: LedgerView, lane: str, takes: Callable[[str], bool]) -> dict[str, HeldGroup]:
    """Return what the ledger holds of the groups for which `takes` is true, by name."""
    return {
        key[2]: replace(read_as(record, parse_group), at=record.offset)
        for key, record in view.of_kind("group")
        if key[1] == lane and takes(key[2])
    }


@dataclass(frozen=True, slots=True)
class Saved:
    """The offset of a group on one target partition (None: no offset), and what was written over it (None: nothing)."""

    before: CommittedOffset | None
    wrote: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A name under which offsets of groups are kept. `who` is empty for the snapshot that a run took."""

    name: str
    at_ms: int
    who: str = ""
    groups: int = 0


_SNAPSHOT = Form(Snapshot, *head("snapshot"), F("at_ms"), F("who"), F("groups"))


def snapshot_record(lane: str, snapshot: Snapshot) -> Record:
    """Make the record that names a snapshot whose groups are in the ledger."""
    return Record(key=encode(["snapshot", lane, snapshot.name]), value=encode(_SNAPSHOT.dump(snapshot)))


def snapshots(view: LedgerView, lane: str) -> dict[str, Snapshot]:
    """Return the lane's snapshots by name, oldest first: in the ledger's order, because clocks differ and are set."""
    found = {}
    for key, record in sorted(view.of_kind("snapshot"), key=lambda entry: entry[1].offset):
        if key[1] == lane:
            found[key[2]] = read_as(record, partial(_SNAPSHOT.load, name=key[2]))
    return found


def saved_record(lane: str, snapshot: str, group: str, offsets: Mapping[TopicPartition, Saved]) -> Record:
    """Make the record of the offsets that a group had, under a snapshot's name."""
    topics: dict[str, list[list[object]]] = {}
    for place, saved in offsets.items():
        row: list[object] = [place.partition, saved.before.offset if saved.before else None, saved.wrote]
        if saved.before is not None and (saved.before.metadata or saved.before.leader_epoch >= 0):
            row += [saved.before.metadata, saved.before.leader_epoch]
        topics.setdefault(place.topic, []).append(row)
    body = {
        "v": LEDGER_VERSION,
        "kind": "offsets",
        "topics": [{"target_topic": topic, "offsets": rows} for topic, rows in sorted(topics.items())],
    }
    return Record(key=encode(["offsets", lane, snapshot, group]), value=encode(body))


def saved_places(view: LedgerView, lane: str, snapshot: str) -> dict[str, int]:
    """Return the ledger offsets, by key, of the records of a snapshot that the view lacks: summaries omit them."""
    prefix = encode(["offsets", lane, snapshot]).decode().removesuffix("]") + ","
    return {key: at for key, at in view.rolled.left.items() if key.startswith(prefix) and key not in view.by_key}


def saved_groups(view: LedgerView, lane: str, snapshot: str) -> dict[str, dict[TopicPartition, Saved]]:
    """Return what a snapshot holds, by group.

    LookupError when the view lacks some of it: `saved_places` says where in the ledger that is.
    """
    if saved_places(view, lane, snapshot):
        raise LookupError(f"what snapshot {snapshot!r} of lane {lane} holds was not read from the ledger")
    return {
        key[3]: read_as(record, _parse_saved)
        for key, record in view.of_kind("offsets")
        if key[1] == lane and key[2] == snapshot
    }


def _parse_saved(body: Json) -> dict[TopicPartition, Saved]:
    found: dict[TopicPartition, Saved] = {}
    for topic in body["topics"]:
        for partition, before, wrote, *rest in topic["offsets"]:
            metadata, epoch = rest or ("", -1)
            committed = (
                None if before is None else CommittedOffset(offset=before, metadata=metadata, leader_epoch=epoch)
            )
            place = TopicPartition(text(topic["target_topic"]), whole(partition))
            found[place] = checked(Saved(committed, wrote))
    return found


def dropped_snapshots(view: LedgerView, lane: str, names: Iterable[str]) -> list[Record]:
    """Make tombstones for snapshots and all that they hold, whether the view has it or not."""
    gone = set(names)
    if not gone:
        return []
    return [
        Record(key=key.encode(), value=None)
        for kind in ("snapshot", "offsets")
        for key in dict.fromkeys([*view.by_key, *view.rolled.left])
        if key.startswith(f'["{kind}",{encode(lane).decode()},') and json.loads(key)[2] in gone
    ]
