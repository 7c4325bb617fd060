"""Snapshots of the target's group offsets in the ledger: taken, compared with now, and written back.

Only the target is connected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.groups.acts.checkpoint import last_check
from ferry.features.groups.acts.saved_offsets import with_saved
from ferry.features.groups.acts.translated import group_rules
from ferry.features.groups.acts.written import outcome_of, written
from ferry.features.groups.rules.checkpoints import TargetGroups
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    dropped_snapshots,
    group_record,
    held_groups,
    saved_groups,
    saved_record,
    snapshot_record,
    snapshots,
)
from ferry.features.groups.rules.concurrent_changes import concurrent_changes, left_to_others
from ferry.features.groups.rules.rollback import (
    Difference,
    Rollback,
    decide_rollback,
    differences,
    held_after,
    held_before,
)
from ferry.features.groups.rules.written_offsets import HeldGroup
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import commit_offsets, fetch_offsets
from ferry.lane.connections import TargetConnection
from ferry.ledger.ledger import LedgerView, overwritten
from ferry.model import GroupOutcome, LedgerRecord, Left, Record, TopicPartition


class GroupSnapshots:
    """The snapshots of one flow's lane. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, patience_s: float = 60.0) -> None:
        """Prepare the connection; `patience_s` is how many seconds an unreachable target is tried."""
        self._flow = flow
        self._lane = flow.lane
        self._connection = TargetConnection.of(flow, patience_s=patience_s)

    def __enter__(self) -> Self:
        """Connect; Unreachable when the target does not answer."""
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def all(self) -> list[Snapshot]:
        """Return the snapshots of the ledger, oldest first; BadInput when the flow never ran."""
        return self._connection.run(self._all)

    async def _all(self) -> list[Snapshot]:
        return list(snapshots(await self._connection.view(), self._lane).values())

    def take(self, name: str, who: str, only: frozenset[str] | None = None, *, dry_run: bool = False) -> Snapshot:
        """Keep all offsets that the flow's groups (`only` these) have on the target now, under a new name.

        BadInput when the name exists, or when a group is missing or could not be read.
        """
        return self._connection.run(partial(self._take, name, who, only, dry_run))

    async def _take(self, name: str, who: str, only: frozenset[str] | None, dry_run: bool) -> Snapshot:
        view = await self._connection.view()
        if name in snapshots(view, self._lane):
            raise BadInput(
                f"there is a snapshot {name!r} already: choose another name, or drop it with ferry groups snapshots "
                f"drop {name}"
            )
        target = self._connection.target
        listed = await list_groups(target)
        rules = group_rules(self._flow, only=only)
        names = [one for one in listed.groups if rules.concern(one)]
        read = await fetch_offsets(target, dict.fromkeys(names), stable=False)
        troubles = [*listed.silent.values(), *map(str, read.failed.values())]
        if troubles:
            raise BadInput(f"no snapshot {name!r} is kept, because it would lack groups: {'; '.join(troubles[:3])}")
        saved = {
            group: {place: Saved(at, None) for place, at in offsets.items()}
            for group, offsets in read.found.items()
            if offsets
        }
        missing = sorted((only or frozenset()) - saved.keys())
        if missing:
            concerns = rules.concern(missing[0])
            why = f"has no offsets on {target.alias}" if concerns else "is excluded by groups or groups.exclude"
            raise BadInput(f"no snapshot {name!r} is kept, because group {missing[0]} {why}: correct --group")
        snapshot = Snapshot(name=name, at_ms=wall_ms(), who=who, groups=len(saved))
        if not dry_run:
            records = [saved_record(self._lane, name, group, offsets) for group, offsets in saved.items()]
            named = snapshot_record(self._lane, snapshot)
            since = await self._since(view, await self._connection.ledger.append([*records, named]))
            if any(one.key == named.key and one.value is not None for one in since):
                raise BadInput(
                    f"snapshot {name!r} was taken by another process at the same time, and mixes both: drop it with "
                    f"ferry groups snapshots drop {name}, and take it again"
                )
        return snapshot

    def drop(self, name: str, *, dry_run: bool = False) -> Snapshot:
        """Remove a snapshot; BadInput when there is none of that name."""
        return self._connection.run(partial(self._drop, name, dry_run))

    async def _drop(self, name: str, dry_run: bool) -> Snapshot:
        view = await self._connection.view()
        snapshot = self._named(view, name)
        if not dry_run:
            await self._connection.ledger.append(dropped_snapshots(view, self._lane, [snapshot.name]))
        return snapshot

    def diff(
        self, name: str | None, only: frozenset[str] | None = None
    ) -> tuple[Snapshot, list[Difference], list[Left]]:
        """Return how the target differs from a snapshot (None: the newest), and which offsets could not be read.

        BadInput when there is none.
        """
        return self._connection.run(partial(self._diff, name, only))

    async def _diff(
        self, name: str | None, only: frozenset[str] | None
    ) -> tuple[Snapshot, list[Difference], list[Left]]:
        view = await self._connection.view()
        snapshot = self._named(view, name)
        saved = await self._saved(view, snapshot, only)
        return snapshot, *differences(self._flow.flow.target, saved, await self._target(saved))

    def rollback(
        self,
        name: str | None,
        run: str,
        only: frozenset[str] | None = None,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> tuple[Snapshot, Rollback, GroupOutcome | None]:
        """Write a snapshot's offsets back. What is there now becomes the snapshot `run`, so this can be undone, too.

        From then on runs leave all offsets of these groups where they are. The outcome is None for a dry run. Raises
        StoodBack, with nothing more written to the target, when the flow was paused since the ledger was read.
        """
        return self._connection.run(partial(self._rollback, name, run, only, force, dry_run))

    async def _rollback(
        self, name: str | None, run: str, only: frozenset[str] | None, force: bool, dry_run: bool
    ) -> tuple[Snapshot, Rollback, GroupOutcome | None]:
        view = await self._connection.view()
        snapshot = self._named(view, name)
        saved = await self._saved(view, snapshot, only)
        target = await self._target(saved)
        held = held_groups(view, self._lane, saved.__contains__)
        decided = decide_rollback(self._flow.flow.target, saved, target, held, force=force)
        if dry_run:
            return snapshot, decided, None
        now_ms = wall_ms()
        records: list[Record] = []
        kept: dict[str, HeldGroup] = {}
        for group, offsets in decided.writes.items():
            there = target.offsets.get(group, {})
            now = {place: Saved(there.get(place), at.offset) for place, at in offsets.items()}
            records.append(saved_record(self._lane, run, group, now))
            # Also of a group that Ferry never wrote, as a tombstone: by it a pass at the same time sees the rollback.
            own = held.get(group, HeldGroup(offsets={}, sources={}, renewed_ms=now_ms))
            kept[group] = held_before(own, offsets, there)
            records.append(group_record(self._lane, group, kept[group], run=run, at_ms=now_ms))
        own_at: list[int] = []
        if records:
            count = len(decided.writes)
            records.append(snapshot_record(self._lane, Snapshot(name=run, at_ms=now_ms, groups=count)))
            own_at, since = await self._keep(records, view.end)
            # Of two that write a group at the same time, the one whose records come first continues.
            taken = concurrent_changes(since, self._lane, now_ms=now_ms, is_run=False).taken
            decided = replace(
                decided,
                writes={group: ones for group, ones in decided.writes.items() if group not in taken},
                left=[*decided.left, *left_to_others(taken, decided.writes.keys())],
            )
        # It reads from `view` on, so that it sees a pause between that and the records, too.
        last = last_check(
            self._connection.ledger,
            view.end,
            self._lane,
            is_run=False,
            own=frozenset(own_at),
            yielded=decided.writes.keys(),
        )
        done = await commit_offsets(self._connection.target, decided.writes, last_check=last)
        forgotten = [
            group_record(self._lane, group, held_after(kept[group], offsets.keys() - places), run=run, at_ms=now_ms)
            for group, offsets in decided.writes.items()
            if (places := written(group, offsets, done))
        ]
        if forgotten:
            await self._keep(forgotten, own_at[-1] + 1)
        outcome = outcome_of(decided.writes, done, left=decided.left, unchanged=decided.unchanged, at_ms=now_ms)
        return snapshot, decided, outcome

    async def _keep(self, records: Sequence[Record], read_to: int) -> tuple[list[int], list[LedgerRecord]]:
        """Write records; return their offsets, and what others wrote from `read_to` on.

        What others wrote of the same groups is written again.
        """
        ledger = self._connection.ledger
        at = await ledger.append_each(records)
        since = await ledger.read_untransacted(read_to, at[0])
        if theirs := overwritten(since, (one for one in records if one.key.startswith(b'["group",'))):
            await ledger.append(theirs)
        return at, since

    async def _since(self, view: LedgerView, end: int) -> list[LedgerRecord]:
        """Return what others wrote to the ledger after `view`, before the offset `end`."""
        return await self._connection.ledger.read_untransacted(view.end, end)

    def _named(self, view: LedgerView, name: str | None) -> Snapshot:
        found = snapshots(view, self._lane)
        if name is None and found:
            return list(found.values())[-1]
        if name is not None and name in found:
            return found[name]
        known = ", ".join(list(found)[-5:])
        of = f"of lane {self._lane} of flow {self._flow.flow}"
        if not found:
            asked = "" if name is None else f" {name!r}"
            raise BadInput(
                f"the ledger has no snapshot{asked} {of}, which has none yet: a run that writes group offsets keeps "
                "one, and so does ferry groups snapshot"
            )
        raise BadInput(
            f"the ledger has no snapshot {name!r} {of} (it has {known}): name one that ferry groups snapshots list "
            "shows"
        )

    async def _saved(
        self, view: LedgerView, snapshot: Snapshot, only: frozenset[str] | None
    ) -> dict[str, dict[TopicPartition, Saved]]:
        view = await with_saved(self._connection.ledger, view, self._lane, snapshot.name)
        saved = saved_groups(view, self._lane, snapshot.name)
        missing = sorted((only or frozenset()) - saved.keys())
        if missing:
            raise BadInput(f"snapshot {snapshot.name!r} has no group {missing[0]}: correct --group")
        return {group: places for group, places in saved.items() if only is None or group in only}

    async def _target(self, saved: Mapping[str, Mapping[TopicPartition, Saved]]) -> TargetGroups:
        target = self._connection.target
        listed = await list_groups(target)
        read = await fetch_offsets(target, {group: list(places) for group, places in saved.items()}, stable=True)
        return TargetGroups(
            listed=listed.groups,
            offsets=read.found,
            pending=read.pending,
            denied=read.denied,
            failed={group: str(error) for group, error in read.failed.items()},
        )
