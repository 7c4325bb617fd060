"""A tabletop drill: what a failover would do and lose now. It reads both clusters once, and writes to neither."""

from __future__ import annotations

from functools import partial

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import FerryError
from ferry.features.drill.acts.report import Found, Heading, clusters_of, goals_met, refused_by, report_of
from ferry.features.drill.acts.scratch_groups import ScratchGroups
from ferry.features.drill.acts.timeline import Timeline
from ferry.features.drill.rules.group_positions import moved
from ferry.features.drill.rules.verdict import loss_sentence
from ferry.features.evidence.rules.figures import deviations_of, losses_of
from ferry.features.identical.acts.late import look_late
from ferry.features.identical.acts.short import ends_of_copies
from ferry.features.identical.rules.late import without_found
from ferry.features.identical.rules.short import known_ends, named, shorter
from ferry.features.switch.acts.partition_state import keeps_offsets
from ferry.features.switch.acts.sides import refuse_identical
from ferry.features.switch.rules import steps
from ferry.lane.connections import FlowConnections
from ferry.messages.catalogue import sentence
from ferry.model.evidence import EvidenceKind, EvidenceReport
from ferry.model.switch import STEPS, Switch, Verb
from ferry.plan.lag import measure_lag
from ferry.run.micro_run import MicroRuns
from ferry.words import count_of


def tabletop(
    settings: Settings, flow: FlowConfig, drill: str, who: str, diary: Timeline, *, patience_s: float = 60.0
) -> tuple[EvidenceReport, FerryError | None]:
    """Read both clusters, and return the report; also why it ended early, if it did.

    `settings` has the flow and its reverse. Raises Refused if the reverse has identical offsets.
    """
    refuse_identical(settings, flow, "ferry drills tabletop", Verb.FAILOVER)
    found, failure = Found(), None
    try:
        _look(flow, diary, found, patience_s)
    except FerryError as error:
        failure = error
    return _report(flow, drill, who, diary, found, failure), failure


def _look(flow: FlowConfig, diary: Timeline, found: Found, patience_s: float) -> None:
    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        with diary.step("clusters", "Reach both clusters") as entry:
            connections.run(connections.ledger.find)
            found.clusters = clusters_of(connections)
            entry.detail = f"both answer; the ledger of {flow.flow} is there"
        with diary.step("loss", "Count what would be lost") as entry:
            late = connections.run(
                lambda: look_late(connections.target, connections.ledger.place, connections.cache, flow.lane)
            )
            lags, keeps = measure_lag(flow, patience_s=patience_s), keeps_offsets(flow)
            at = {lag.target: lag.position for lag in lags if keeps(lag.source.topic) and lag.position}
            short = shorter(at, connections.run(partial(ends_of_copies, connections.target, at)))
            found.losses = losses_of(without_found(lags, {**known_ends(short), **late.ends}))
            found.losses_at_ms = wall_ms()
            found.note_passed_over(flow, connections)
            behind, unknown = (
                sum(bool(loss.records) for loss in found.losses),
                sum(loss.records is None for loss in found.losses),
            )
            more = f", {unknown} not known" if unknown else ""
            entry.detail = f"{count_of(len(found.losses), 'partition')}, {behind} with lag{more}"
            if short:
                found.notes.append(sentence("identical.short.lost", places=named(short), cluster=flow.flow.target))
            if late.until:
                found.notes.append(f"the step stop of a failover would be refused: {late.sentence(flow.flow.target)}")
        with diary.step("groups", "Translate the groups' offsets") as entry:
            scratch = ScratchGroups(flow=flow, connections=connections)
            standings = connections.run(lambda: scratch.standings(None))
            found.note_groups(scratch)
            found.groups = tuple(moved(group, group, ones) for group, ones in sorted(standings.items()))
            offsets = sum(group.committed for group in found.groups)
            entry.detail = f"{count_of(len(found.groups), 'group')}, {count_of(offsets, 'offset')} would be committed"
    with diary.step("plan", "Plan what a run would do before") as entry, MicroRuns(flow, patience_s=patience_s) as runs:
        plan = runs.preview()
        found.refusals, found.notes = refused_by(plan), [*found.notes, *plan.notes]
        entry.detail = f"{count_of(len(plan.kept), 'slice')}, {count_of(len(plan.refusals), 'refusal')}"


def _report(
    flow: FlowConfig, drill: str, who: str, diary: Timeline, found: Found, failure: FerryError | None
) -> EvidenceReport:
    goals = goals_met(flow, found, moves=False)
    return report_of(
        Heading(id=drill, kind=EvidenceKind.TABLETOP, flow=flow, lane=flow.lane, who=who),
        found,
        diary.steps,
        began_ms=diary.began_ms,
        goals=goals,
        deviations=deviations_of(goals, (), None, ()),
        summary=str(failure) if failure else loss_sentence(found.losses, flow.flow.source, found.passed_over),
        failure=failure,
        would=_steps(flow, drill, who),
    )


def _steps(flow: FlowConfig, drill: str, who: str) -> tuple[str, ...]:
    """Return what a failover would do, step by step."""
    now_ms = wall_ms()
    switch = Switch(
        id=drill,
        verb=Verb.FAILOVER,
        named=flow.flow,
        via=flow.flow,
        who=who,
        approved_by="",
        approved_ms=now_ms,
        at_ms=now_ms,
    )
    return tuple(steps.sentence(switch, step) for step in STEPS[Verb.FAILOVER])
