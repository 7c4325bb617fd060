"""A shadow drill: the flow copied to scratch topics, its groups moved to scratch groups, all compared and removed.

It works in a lane of its own, and checks production before and after. If it is killed, it leaves a lane, scratch topics
and scratch groups. `ferry lanes drop`, or the next drill with `clean`, removes them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from itertools import count

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.config.flow.start import Start
from ferry.errors import FerryError, Refused
from ferry.features.drill.acts.copying import copy_seen
from ferry.features.drill.acts.looking import compare_content, read_groups, split_transformed
from ferry.features.drill.acts.production import Production, production, untouched
from ferry.features.drill.acts.report import Found, Heading, clusters_of, goals_met, refused_by, report_of
from ferry.features.drill.acts.scratch_groups import ScratchGroups
from ferry.features.drill.acts.timeline import Timeline
from ferry.features.drill.rules.verdict import loss_sentence, shadow_sentence
from ferry.features.evidence.rules.figures import Committed, deviations_of, losses_of, samples_of, untried
from ferry.features.lanes.acts.dropping import LaneDrop
from ferry.features.lanes.rules.listing import lane_names
from ferry.features.verify.acts.wanted import Wanted
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.connections import FlowConnections
from ferry.ledger.report import Report
from ferry.model import LaneKind, Plan, lane_kind, scratch_lane
from ferry.model.check import Check
from ferry.model.evidence import EvidenceKind, EvidenceReport
from ferry.plan.lag import measure_lag
from ferry.plan.options import RunOptions
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.words import count_of

RTO_MEANS = "from the loss, as the drill took it, until every group's offsets were committed and read at the target"

CHUNK_SECONDS = 2
"""The most seconds that a transaction of a drill stays open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowOptions:
    """What is rehearsed: `topics` (None: all of the flow) from `start`, at most `max_bytes`."""

    lane: str
    who: str
    start: Start
    topics: frozenset[str] | None = None
    max_bytes: int | None = None
    clean: bool = False
    """Whether the remains of an earlier drill are removed first."""
    approved_by: str = ""
    approved_ms: int = 0


@dataclass(slots=True, kw_only=True)
class _Found(Found):
    before: Production | None = None
    records: int = 0
    begun: bool = False
    """Whether anything may have been written."""


class ShadowDrill:
    """One shadow drill. `preview` returns what it would do; `run` does it."""

    def __init__(self, flow: FlowConfig, options: ShadowOptions, *, patience_s: float = 60.0) -> None:
        """Choose the flow, as in the file, in its live lane."""
        self._live = flow
        self._options = options
        self._patience_s = patience_s
        self._only = options.topics
        # Small chunks, so that the report shows how lag and throughput change.
        seconds = min(flow.copy.chunk_seconds, CHUNK_SECONDS)
        shadow = in_lane(flow, options.lane)
        self._flow = replace(shadow, copy=replace(shadow.copy, start=options.start, chunk_seconds=seconds))

    def preview(self) -> tuple[tuple[str, ...], Plan]:
        """Return what the drill would do, and what it would copy now; writes nothing.

        The errors of its first step are raised.
        """
        with FlowConnections.of(self._live, patience_s=self._patience_s) as connections:
            left = connections.run(lambda: self._leftovers(connections))
            connections.run(lambda: self._leave_transformed(connections.source))
        with MicroRuns(self._flow, patience_s=self._patience_s) as runs:
            plan = runs.preview(self._narrowed() or RunOptions())
        target = self._live.flow.target
        topics = sorted({piece.target.topic for piece in plan.kept})
        first = f"remove what is left of {', '.join(left)}" if left else "read both clusters, and production"
        offsets = sum(piece.offsets for piece in plan.kept)
        there = f"{count_of(len(topics), 'scratch topic')} of {target} in lane {self._options.lane}"
        return (
            first,
            f"copy {offsets} offsets of {count_of(len(plan.kept), 'partition')} to {there}",
            f"commit the groups' translated offsets to scratch groups of {target}, and read where they continue",
            "compare the copies with the source, record by record",
            "check that production is untouched, and remove topics, groups and lane",
        ), plan

    def run(self, diary: Timeline) -> tuple[EvidenceReport, FerryError | None]:
        """Do all steps, and return the report; also why the drill ended early, if it did.

        What it has made is always removed.
        """
        found, failure = _Found(), None
        try:
            self._rehearse(diary, found)
        except FerryError as error:
            failure = error
        finally:
            if found.begun:
                kept = self._clean(diary, found)
                failure = failure or kept
        return self._report(diary, found, failure), failure

    def _narrowed(self, copied: int = 0) -> RunOptions | None:
        """Return the options of the next run; None if the drill's budget is used up."""
        left = None if self._options.max_bytes is None else self._options.max_bytes - copied
        if left is not None and left <= 0:
            return None
        return RunOptions(only=self._only, max_bytes=left)

    async def _leave_transformed(self, source: Cluster) -> list[str]:
        """Narrow the drill to topics that this process can copy. Return a sentence for each other one.

        Raises Refused.
        """
        if not self._live.records.transforms:
            return []
        named = self._options.topics
        there = named if named is not None else await source.refresh(None)
        taken = frozenset(name for name in there if self._live.topics.selection.takes(name))
        others, notes = split_transformed(self._live, taken, named=named is not None)
        self._only = others if notes else named
        return notes

    def _rehearse(self, diary: Timeline, found: _Found) -> None:
        with FlowConnections.of(self._live, patience_s=self._patience_s) as connections:
            self._look(diary, found, connections)
            self._copy(diary, found)
            self._groups(diary, found, connections)
            self._verify(diary, found)
            self._look_again(diary, found, connections)

    def _look(self, diary: Timeline, found: _Found, connections: FlowConnections) -> None:
        with diary.step("look", "Read both clusters") as entry:
            found.clusters = clusters_of(connections)
            left = connections.run(lambda: self._leftovers(connections))
            for lane in left:
                self._drop(lane)
            found.notes += [f"an earlier drill had left lane {lane}: it was removed" for lane in left]
            found.notes += connections.run(lambda: self._leave_transformed(connections.source))
            found.losses = losses_of(measure_lag(self._live, only=self._only, patience_s=self._patience_s))
            found.losses_at_ms = wall_ms()
            found.note_passed_over(self._live, connections, self._only)
            found.before = connections.run(lambda: self._production(connections))
            groups = count_of(len(found.before.groups), "group")
            entry.detail = f"{count_of(len(found.losses), 'partition')}; {groups} at the target"

    async def _leftovers(self, connections: FlowConnections) -> list[str]:
        """Return the drills that the ledger still has. Raises Refused for one, unless they are to be removed."""
        left = [lane for lane in lane_names(await connections.view_if_any()) if lane_kind(lane) is LaneKind.DRILL]
        if left and not self._options.clean:
            raise Refused(
                f"drill {left[0]} of flow {self._live.flow} is active, or was killed: let it end, or remove it with "
                f"{self._dropping(left[0])}, or begin with --clean"
            )
        return left

    async def _production(self, connections: FlowConnections) -> Production:
        view = await connections.view_if_any()
        return await production(self._live, connections, view)

    def _copy(self, diary: Timeline, found: _Found) -> None:
        """Run until all is copied that was there when the drill began, or until its budget is used up."""
        approved = (self._options.approved_by, self._options.approved_ms)
        chunks: list[Committed] = []
        offsets = partitions = size = 0
        with (
            diary.step("copy", "Copy to scratch topics", approved=approved) as entry,
            MicroRuns(self._flow, patience_s=self._patience_s) as runs,
        ):
            began, narrowed = wall_ms(), self._narrowed()
            for number in count(1):
                narrowed = self._narrowed(size)
                if number > 1 and (narrowed is None or not self._lacks(runs.preview(narrowed), found)):
                    break
                found.begun = True
                plan = runs.open_new(f"{self._options.lane}-{number}", local_origin(), narrowed or RunOptions())
                report = self._copy_one(runs, plan, diary, chunks)
                offsets += sum(piece.offsets for piece in plan.kept)
                partitions = max(partitions, len(plan.kept))
                size += report.bytes
                found.records += report.records
                found.notes += [note for note in plan.notes if note not in found.notes]
                found.refusals += refused_by(plan) if number == 1 else []
                found.paused = plan.held_back if number == 1 else found.paused
                found.samples = samples_of(began, offsets, chunks)
                there = count_of(partitions, "partition")
                entry.detail = (
                    f"{count_of(found.records, 'record')} of {there}, {size / 1e6:.1f} MB, in {count_of(number, 'run')}"
                )
                if not plan.kept:
                    break
            if narrowed is None:
                found.notes.append(
                    f"the drill's budget of {self._options.max_bytes} bytes was over before all was copied"
                )

    def _copy_one(self, runs: MicroRuns, plan: Plan, diary: Timeline, chunks: list[Committed]) -> Report:
        _refuse_real_topics(plan)
        failure = copy_seen(runs, plan, diary.stop, chunks)
        if failure is not None:
            raise failure
        if diary.stop():
            raise Refused("stopped by a signal while copying: start the drill again")
        return runs.report(plan.run)

    def _lacks(self, plan: Plan, found: _Found) -> bool:
        """Return whether the next run would copy something that was there when the drill began."""
        ends = {loss.source: loss.source_end or 0 for loss in found.losses}
        return any(piece.start < ends.get(piece.source, 0) for piece in plan.kept)

    def _groups(self, diary: Timeline, found: _Found, connections: FlowConnections) -> None:
        scratch = ScratchGroups(flow=self._flow, connections=connections)
        lost_ms = wall_ms()
        with diary.step("groups", "Move the groups to scratch groups") as entry:
            done = connections.run(lambda: scratch.rehearse(self._only))
            found.note_groups(scratch)
            entry.detail = f"{count_of(len(done.standings), 'group')}, {count_of(len(done.committed), 'offset')}"
        read_groups(diary, found, scratch, done, self._options.lane, began_ms=lost_ms, patience_s=self._patience_s)

    def _verify(self, diary: Timeline, found: _Found) -> None:
        with diary.step("verify", "Compare the content of both clusters") as entry:
            if not found.records:
                entry.detail = "nothing was copied"
                return
            compare_content(self._flow, Wanted(), entry, found, patience_s=self._patience_s)

    def _look_again(self, diary: Timeline, found: _Found, connections: FlowConnections) -> None:
        with diary.step("production", "Check that production is untouched") as entry:
            after = connections.run(lambda: self._production(connections))
            if found.before is not None:
                found.checks += untouched(found.before, after, self._live)
            entry.detail = "untouched" if all(check.ok for check in found.checks) else "it changed"

    def _clean(self, diary: Timeline, found: _Found) -> FerryError | None:
        """Remove what the drill made. If that fails, the report has a deviation with the remedy: `ferry lanes drop`."""
        lane, name = self._options.lane, "Nothing is left of the drill"
        try:
            with diary.step("clean", "Remove what the drill made", always=True) as entry:
                dropped = self._drop(lane)
                entry.detail = f"{count_of(len(dropped), 'scratch topic')}, the scratch groups and the lane"
        except FerryError as error:
            remedy = f"{error}; then {self._dropping(lane)}"
            found.checks.append(Check(name=name, ok=False, message=remedy))
            return error
        found.checks.append(Check(name=name, ok=True, message=f"lane {lane}, its topics and groups are gone"))
        return None

    def _dropping(self, lane: str) -> str:
        return f"ferry lanes drop '{self._live.flow}' {lane} --yes --interrupt"

    def _drop(self, lane: str) -> tuple[str, ...]:
        with LaneDrop(self._live, lane, patience_s=self._patience_s) as drop:
            run = f"drop-{lane}-{secrets.token_hex(2)}"
            return drop.drop(run, local_origin(), self._options.who, interrupt=True).topics

    def _report(self, diary: Timeline, found: _Found, failure: FerryError | None) -> EvidenceReport:
        live = self._live
        goals = goals_met(live, found)
        deviations = deviations_of(goals, found.groups, found.verification, found.checks)
        if failure is None:
            deviations = (*untried(found.groups, found.paused, copied=found.records), *deviations)
        result = shadow_sentence(
            found.records, found.equal, found.groups, found.rto_s, live.flow.target, knows_groups=found.knows_groups
        )
        loss = loss_sentence(found.losses, live.flow.source, found.passed_over, part=self._only is not None)
        lane, who = self._options.lane, self._options.who
        return report_of(
            Heading(id=lane, kind=EvidenceKind.SHADOW, flow=live, lane=lane, who=who, rto_means=RTO_MEANS),
            found,
            diary.steps,
            began_ms=diary.began_ms,
            goals=goals,
            deviations=deviations,
            summary=str(failure) if failure else f"{result}; {loss}",
            failure=failure,
        )


def _refuse_real_topics(plan: Plan) -> None:
    """Raise Refused if a slice has a target other than a scratch topic of its lane."""
    for piece in plan.kept:
        if scratch_lane(piece.target.topic) != plan.lane:
            raise Refused(f"a drill writes to scratch topics alone, and {piece.target} is none: nothing was copied")
