"""Consumer groups after a run, and by hand: translated by what is copied, written, reported."""

from __future__ import annotations

import logging

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.checkpoint import GroupSync, Looked, StoodBack
from ferry.features.groups.acts.mirror_topics import MirrorTopics
from ferry.garbage import left_uncollected
from ferry.ledger.checkpoint_codec import checkpoint_record
from ferry.ledger.ledger import UNREAD, pauses
from ferry.ledger.receipts import last_receipts
from ferry.ledger.resume import planned_run
from ferry.ledger.runs import has_plan, newest_run, superseded_by
from ferry.ledger.unit_codec import last_units
from ferry.messages.catalogue import sentence
from ferry.model import GroupOutcome, lane_kind
from ferry.run.micro_run import MicroRuns

log = logging.getLogger(__name__)


def checkpoint(runs: MicroRuns, run: str) -> GroupOutcome | None:
    """Translate the groups' offsets by what is copied: to the target's groups, and to MirrorMaker 2's topics.

    It is safe to repeat. Return what happened to the target's groups, which the ledger gets, too, for the report. None
    if the flow's file turns that off; MirrorMaker 2's topics are written nevertheless, where the file says so. Nothing
    is done, and None is returned, in these cases:

    - The flow is paused, or is paused while groups are read.
    - A newer run owns the lane, or begins meanwhile: that run does it.
    - The lane is not the flow's own, so that it does not have all that is copied.
    - The run was refused as a whole, in a lane that never copied: it leaves no topics.
    """
    if runs.lane != runs.flow.lane or lane_kind(runs.lane) is not None:
        return None

    async def work() -> GroupOutcome | None:
        await runs.settled_view()
        view = await runs.view(run)
        plan, opened = planned_run(view, runs.lane, run)
        newer = superseded_by(view, runs.lane, opened.generation)
        if newer is not None or "" in pauses(view, wall_ms()):
            log.info("groups are left alone: %s", f"run {newer.record.run} is newer" if newer else "flow is paused")
            return None
        copied = last_receipts(view, runs.lane) or last_units(view, runs.lane)
        if plan.refusals and not plan.copies and not copied:
            log.info("groups are left alone: run %s was refused, and the lane never copied", run)
            return None
        groups = _groups(runs)
        looked, done = None, None
        if runs.flow.syncs_groups or runs.flow.emits_checkpoints:
            looked = await groups.look(view, groups.rules())
        if looked is not None and runs.flow.syncs_groups:
            try:
                done = await groups.write(view, looked, run, is_run=True)
            except StoodBack as why:
                log.info("%s", why)
                return None
            await runs.ledger_topic.append([checkpoint_record(runs.lane, run, done)])
        found = () if looked is None else looked.groups.checkpoints.values()
        # If groups are written, too, the report names them.
        missed = () if looked is None or runs.flow.syncs_groups else looked.untranslated
        both = runs.connections
        mirror = MirrorTopics(
            flow=runs.flow, lane=runs.lane, source=both.source, target=both.target, ledger=runs.ledger_topic
        )
        await mirror.emit(view, plan, [one for checkpoints in found for one in checkpoints], missed)
        return done

    with left_uncollected():
        return runs.wait_for(work)


def sync_groups(
    runs: MicroRuns, run: str, *, only: frozenset[str] | None = None, force: bool = False, dry_run: bool = False
) -> tuple[Looked, GroupOutcome | None]:
    """Do what `checkpoint` does for groups, by hand and independent of the file; with `dry_run` nothing is written.

    Raises BadInput when the flow never ran, StoodBack when it is paused meanwhile.
    """

    async def work() -> tuple[Looked, GroupOutcome | None]:
        view = await runs.settled_view()
        groups = _groups(runs)
        looked = await groups.look(view, groups.rules(only=only, force=force))
        return looked, None if dry_run else await groups.write(view, looked, run, is_run=False)

    with left_uncollected():
        return runs.wait_for(work)


def sync_groups_unattended(
    runs: MicroRuns, run: str, *, only: frozenset[str] | None = None, dry_run: bool = False
) -> tuple[Looked, GroupOutcome | None]:
    """Do what `sync_groups` does where no operator decides it, as on a schedule; a run may copy at the same time.

    It is safe to repeat. Raises StoodBack, with nothing more written, in these cases:

    - The flow's file says to leave groups alone.
    - The lane had no run yet.
    - The flow is paused, or is paused while groups are read.
    - A run of the lane has begun and has no plan yet, or begins while groups are read. Until it is planned it may
      delete topics and create them again. Offsets of the old ones would skip records of the new ones.
    - Another process wrote one of the groups right before the commits: its offsets may be newer.
    """
    flow = runs.flow
    if flow.unsynced:
        raise _left_alone(flow, "groups.unsynced", why=flow.unsynced)

    async def work() -> tuple[Looked, GroupOutcome | None]:
        view = await runs.settled_view() if await runs.ledger_topic.exists() else UNREAD
        newest = newest_run(view, runs.lane)
        if newest is None:
            raise _left_alone(flow, "groups.not-begun", lane=runs.lane, target=flow.flow.target)
        pause = pauses(view, wall_ms()).get("")
        if pause is not None:
            raise _left_alone(flow, "groups.paused", who=pause.who, why=pause.why)
        if not has_plan(view, newest):
            raise _left_alone(flow, "groups.unplanned", run=newest.record.run)
        groups = _groups(runs)
        looked = await groups.look(view, groups.rules(only=only))
        return looked, None if dry_run else await groups.write(view, looked, run, is_run=True, yields=True)

    with left_uncollected():
        return runs.wait_for(work)


def _left_alone(flow: FlowConfig, code: str, **facts: str) -> StoodBack:
    return StoodBack(sentence(code, flow=str(flow.flow), **facts))


def _groups(runs: MicroRuns) -> GroupSync:
    return GroupSync(flow=runs.flow, lane=runs.lane, connections=runs.connections)
