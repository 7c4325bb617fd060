"""A tabletop drill: what a failover would do and lose now, from one look at both clusters; neither is written to."""

from __future__ import annotations

from dataclasses import dataclass

from ferry import __version__
from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.decide.drill.figures import deviations_of, goals_of, losses_of
from ferry.decide.drill.standing import moved
from ferry.decide.drill.verdict import loss_sentence, outcome_of
from ferry.decide.switch.steps import STEPS, sentence
from ferry.errors import FerryError
from ferry.model import Plan
from ferry.model.evidence import EvidenceCluster, EvidenceKind, EvidenceReport, GroupMoved, Loss
from ferry.model.switch import Switch, Verb
from ferry.run.drill.diary import Diary
from ferry.run.drill.scratch_groups import ScratchGroups
from ferry.run.flow.connections import FlowConnections
from ferry.run.micro_run import MicroRuns
from ferry.run.plan.lag import measure_lag
from ferry.words import count_of


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What was found so far; a drill that ends early reports this much."""

    clusters: tuple[EvidenceCluster, ...] = ()
    losses: tuple[Loss, ...] = ()
    losses_at_ms: int = 0
    groups: tuple[GroupMoved, ...] | None = None
    plan: Plan | None = None


def tabletop(
    flow: FlowConfig, drill: str, who: str, diary: Diary, *, patience_s: float = 60.0
) -> tuple[EvidenceReport, FerryError | None]:
    """Look, and say what was seen; also why not all of it was, if it was not."""
    seen, failure = _Seen(), None
    try:
        _look(flow, diary, seen, patience_s)
    except FerryError as error:
        failure = error
    return _report(flow, drill, who, diary, seen, failure), failure


def _look(flow: FlowConfig, diary: Diary, seen: _Seen, patience_s: float) -> None:
    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        with diary.step("clusters", "Reach both clusters") as entry:
            connections.run(connections.ledger.find)
            seen.clusters = clusters_of(connections)
            entry.detail = f"both answer; the ledger of {flow.flow} is there"
        with diary.step("loss", "Count what would be lost") as entry:
            seen.losses = losses_of(measure_lag(flow, patience_s=patience_s))
            seen.losses_at_ms = wall_ms()
            behind = sum(loss.records != 0 for loss in seen.losses)
            entry.detail = f"{count_of(len(seen.losses), 'partition')}, {behind} behind"
        with diary.step("groups", "Translate the groups' offsets") as entry:
            scratch = ScratchGroups(flow=flow, connections=connections)
            standings = connections.run(lambda: scratch.standings(None))
            seen.groups = tuple(moved(group, group, ones) for group, ones in sorted(standings.items()))
            offsets = sum(group.committed for group in seen.groups)
            entry.detail = f"{count_of(len(seen.groups), 'group')}, {count_of(offsets, 'offset')} would be committed"
    with diary.step("plan", "Plan what a run would do before") as entry, MicroRuns(flow, patience_s=patience_s) as runs:
        seen.plan = runs.preview()
        entry.detail = f"{len(seen.plan.slices)} slices, {len(seen.plan.refusals)} refusals"


def clusters_of(connections: FlowConnections) -> tuple[EvidenceCluster, ...]:
    """Both clusters as evidence names them."""
    return tuple(
        EvidenceCluster(alias=cluster.alias, cluster_id=cluster.cluster_id, brokers=len(cluster.brokers))
        for cluster in (connections.source, connections.target)
    )


def _report(
    flow: FlowConfig,
    drill: str,
    who: str,
    diary: Diary,
    seen: _Seen,
    failure: FerryError | None,
) -> EvidenceReport:
    goals = () if not seen.losses_at_ms else goals_of(
        losses=seen.losses, rpo_seconds=flow.rpo.seconds, rto_s=None, rto_seconds=None, groups=None
    )  # fmt: skip
    plan = seen.plan
    refused = () if plan is None else tuple(f"{one.message} [{one.kind}]" for one in plan.refusals)
    deviations = deviations_of(goals, (), None, ())
    refusals = (*([str(failure)] if failure else []), *refused)
    summary = str(failure) if failure else loss_sentence(seen.losses, flow.flow.source)
    return EvidenceReport(
        id=drill,
        kind=EvidenceKind.TABLETOP,
        flow=flow.flow,
        lane=flow.lane,
        policy=flow.policy_name,
        clusters=seen.clusters,
        who=who,
        version=__version__,
        began_ms=diary.began_ms,
        ended_ms=wall_ms(),
        outcome=outcome_of(diary.steps, refusals, deviations),
        summary=summary,
        steps=tuple(diary.steps),
        goals=goals,
        losses=seen.losses,
        losses_at_ms=seen.losses_at_ms,
        groups=seen.groups or (),
        would=_steps(flow, drill, who),
        deviations=deviations,
        refusals=refusals,
        notes=() if plan is None else tuple(plan.notes),
    )


def _steps(flow: FlowConfig, drill: str, who: str) -> tuple[str, ...]:
    """What a failover would do, step by step."""
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
    return tuple(sentence(switch, step) for step in STEPS[Verb.FAILOVER])
