"""The kinds of records that a ledger has: one row for each, with all that is done with a record by its kind alone.

A key is a compact JSON array, the kind first, so that compaction keeps the last record of each. The contents of the
values are in docs/ledger.md. A feature that keeps something in the ledger adds a row here. Its codec is in its
`rules`; if a plan or a report of the kernel has the record, too, it is in `ferry.ledger`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

KeyPart = type | tuple[type, ...]
_NUMBER_OR_SEAL: KeyPart = (int, str)


class OfLost(Enum):
    """What `ferry ledger rebuild` does with a record in the topic into which it writes a lost ledger again."""

    REPLACED = "a run that copied nothing leaves it, and the next one writes it again"
    CARRIED = "written again after the export: it holds whatever was copied"
    CARRIED_OF_NEW_LANES = "the same, where the export does not know its lane"
    EVIDENCE = "no other record says it: the rebuild would lose it, and is refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerKind:
    """A kind of record."""

    key: Mapping[str, KeyPart]
    """The parts of the key after the kind: names and JSON types.

    With `lane` first, `ferry lanes drop` deletes the record. With `lane`, `run`, it is deleted when the ledger deletes
    the run.
    """
    says: str
    formats: tuple[int, ...] = (1,)
    """The values of `v` that this Ferry writes; for a plan, those in the head of its seal."""
    optional: tuple[int, ...] = ()
    """How many of the last parts may be absent: each number that Ferry writes."""
    of_lost: OfLost = OfLost.REPLACED
    plural: str = ""
    """What several of them are called in messages, where they are evidence."""
    outlives_lane: bool = False
    """Whether it stays when its lane is dropped."""
    goes_with_copy: bool = False
    """Whether it is deleted together with a copy that is deleted after its source.

    Receipts are, too: by the offset map.
    """
    in_summary: bool = True
    """Whether a summary of the ledger holds it. If not, a reader that needs it reads it at its offset."""
    names_run: bool = False
    """Whether no two ledgers have the same record at one offset, because it names a run."""

    @property
    def is_of_lane(self) -> bool:
        """Whether the first part of the key is a lane."""
        return next(iter(self.key), "") == "lane"

    @property
    def is_of_run(self) -> bool:
        """Whether the first parts of the key are a lane and a run."""
        return list(self.key)[:2] == ["lane", "run"]


_RUN: Mapping[str, KeyPart] = {"lane": str, "run": str}
_TARGET: Mapping[str, KeyPart] = {"lane": str, "target": str}
_TARGET_PARTITION: Mapping[str, KeyPart] = {**_TARGET, "partition": int}
_SOURCE: Mapping[str, KeyPart] = {"lane": str, "source": str}

KINDS: Mapping[str, LedgerKind] = {
    "run": LedgerKind(key=_RUN, says="opens a run; its offset is the run's generation", names_run=True),
    "fenced": LedgerKind(
        key={"lane": str}, says="the last run that fenced the lane's slots, and how many there were"
    ),
    "plan": LedgerKind(
        key={**_RUN, "generation": int, "part": _NUMBER_OR_SEAL},
        says='a piece of the plan; part "seal" makes it exist',
        formats=(1, 2, 3, 4, 5, 6),
        in_summary=False,
    ),
    "attempt": LedgerKind(
        key=_RUN,
        says="the last execution of the run's copy step began (its offset is its number), or was called off",
    ),
    "outcome": LedgerKind(key=_RUN, says="what the run's tasks refused", in_summary=False),
    "checkpoint": LedgerKind(key=_RUN, says="what became of the groups in a run"),
    "verified": LedgerKind(key=_RUN, says="what came of a run that verified itself"),
    "unit": LedgerKind(
        key={**_RUN, "target": str, "partition": int, "number": int},
        says="one chunk of one target partition of a topic that gets other partitions",
        formats=(2,),
        of_lost=OfLost.EVIDENCE,
        plural="receipts of transformed records",
        in_summary=False,
        names_run=True,
    ),
    "receipt": LedgerKind(
        key={**_TARGET_PARTITION, "start": int, "since": int},
        says="one chunk of one target partition; `since` where a run went back on the partition",
        formats=(1, 2, 3),
        optional=(1,),
        of_lost=OfLost.EVIDENCE,
        plural="receipts of copied records",
        names_run=True,
    ),
    "last": LedgerKind(
        key=_TARGET_PARTITION,
        says="the same value again: a target partition's last receipt",
        formats=(1, 2, 3),
        of_lost=OfLost.EVIDENCE,
        plural="newest receipts of partitions",
        goes_with_copy=True,
        names_run=True,
    ),
    "era": LedgerKind(
        key=_TARGET,
        says="by which rule a transform gives a target topic its records",
        formats=(2,),
        of_lost=OfLost.EVIDENCE,
        plural="rules of transformed topics",
    ),
    "accounted": LedgerKind(
        key=_TARGET,
        says="how far a target topic was searched for records of other producers",
        goes_with_copy=True,
    ),
    "adopted": LedgerKind(
        key={**_TARGET_PARTITION, "end": int},
        says="what another replicator had copied and the lane took over",
        of_lost=OfLost.EVIDENCE,
        plural="partitions taken over from MirrorMaker",
        goes_with_copy=True,
    ),
    "pruned": LedgerKind(
        key={**_TARGET_PARTITION, "since": int},
        says="receipts that no longer count, because neither side has their records",
        optional=(1,),
        goes_with_copy=True,
    ),
    "start": LedgerKind(
        key=_SOURCE,
        says="where the lane's first run began in a topic",
        of_lost=OfLost.CARRIED_OF_NEW_LANES,
        goes_with_copy=True,
    ),
    "gap": LedgerKind(
        key={**_SOURCE, "partition": int, "start": int, "since": int, "why": str},
        says="source offsets that were skipped on purpose; without the last parts where retention took them first",
        optional=(2,),
        of_lost=OfLost.EVIDENCE,
        plural="gaps",
        goes_with_copy=True,
    ),
    "deleted": LedgerKind(
        key=_TARGET,
        says="a copy was deleted after its source; its receipts and claim are tombstones",
        of_lost=OfLost.EVIDENCE,
        plural="copies that were deleted after their source",
    ),
    "seen": LedgerKind(key=_SOURCE, says="when the lane last had all of a compacted source topic"),
    "began": LedgerKind(
        key={"lane": str}, says="where the lane's first run began", of_lost=OfLost.CARRIED_OF_NEW_LANES
    ),
    "window": LedgerKind(
        key={**_SOURCE, "window": str},
        says="which offsets a window of a source topic is",
        of_lost=OfLost.CARRIED_OF_NEW_LANES,
    ),
    "producer": LedgerKind(
        key={**_TARGET_PARTITION, "first": int},
        says="the producer id under which the lane writes records at the source's offsets; with a target partition: a "
        "batch may have been sent there. With an offset: empty records may be before it",
        formats=(3,),
        optional=(1, 3),
        of_lost=OfLost.EVIDENCE,
        plural="producer ids of identical offsets",
        outlives_lane=True,
    ),
    "marking": LedgerKind(
        key=_TARGET_PARTITION,
        says="until when the lane sends markers to a target partition, which pass offsets without a record; 0: all of "
        "them were answered",
        formats=(3,),
        of_lost=OfLost.EVIDENCE,
        plural="markers of identical offsets",
        outlives_lane=True,
    ),
    "continued": LedgerKind(
        key=_TARGET_PARTITION,
        says="where the lane continues with identical offsets after records of clients, that a switch had moved, and "
        "under which producer id",
        formats=(3,),
        of_lost=OfLost.EVIDENCE,
        plural="places where a flow with identical offsets continues",
        outlives_lane=True,
    ),
    "claim": LedgerKind(key={"target": str, "lane": str}, says="a lane of this flow owns a target topic"),
    "share": LedgerKind(key={"target": str}, says="this flow agrees to write a target topic together with other flows"),
    "group": LedgerKind(
        key={"lane": str, "group": str},
        says="what is meant to be written of a consumer group",
        of_lost=OfLost.EVIDENCE,
        plural="groups whose offsets were written",
    ),
    "offsets": LedgerKind(
        key={"lane": str, "snapshot": str, "group": str},
        says="what a group had on the target, and what was written over it",
        of_lost=OfLost.EVIDENCE,
        plural="groups' previous offsets",
        in_summary=False,
    ),
    "snapshot": LedgerKind(
        key={"lane": str, "snapshot": str},
        says="names a snapshot of groups",
        of_lost=OfLost.EVIDENCE,
        plural="snapshots of group offsets",
    ),
    "mirror": LedgerKind(key={"lane": str}, says="what was written last to MirrorMaker 2's topics"),
    "acl": LedgerKind(
        key={
            "lane": str, "type": str, "name": str, "pattern": str,
            "principal": str, "host": str, "operation": str, "permission": str,
        },
        says="an ACL that Ferry made",
        of_lost=OfLost.CARRIED,
    ),
    "acls": LedgerKind(key={"lane": str}, says="the last whole sync of ACLs"),
    "map": LedgerKind(
        key={**_TARGET_PARTITION, "generation": int, "number": int},
        says="a block of an offset map",
        of_lost=OfLost.EVIDENCE,
        plural="blocks of offset maps",
    ),
    "summary": LedgerKind(
        key={"generation": int, "part": _NUMBER_OR_SEAL},
        says='a piece of a summary of the ledger; part "seal" makes it exist',
        in_summary=False,
    ),
    "dropped": LedgerKind(
        key={"lane": str},
        says="who dropped a lane, when, and what it held",
        of_lost=OfLost.EVIDENCE,
        plural="lanes that were dropped",
        outlives_lane=True,
    ),
    "rebuilt": LedgerKind(key={"upto": int}, says="who wrote the ledger again from an export, up to this offset"),
    "pause": LedgerKind(key={"topic": str}, says='a pause; topic "" means the whole flow', of_lost=OfLost.CARRIED),
    "approval": LedgerKind(
        key={"run": str, "by": str},
        says="what a person approved in Airflow, and each use of it",
        optional=(1,),
        of_lost=OfLost.EVIDENCE,
        plural="approvals",
    ),
    "switch": LedgerKind(
        key={"id": str, "step": str, "part": (int, str)},
        says="a switchover, failover or failback, and its steps",
        optional=(1, 2),
        of_lost=OfLost.EVIDENCE,
        plural="records of switches",
    ),
}  # fmt: skip
"""Kinds of records, by the first element of the key. Other kinds are from a newer Ferry, and stay unchanged."""

KINDS_OF_RUN = tuple(name for name, kind in KINDS.items() if kind.is_of_run)
KINDS_OF_LANE = tuple(name for name, kind in KINDS.items() if kind.is_of_lane and not kind.outlives_lane)
