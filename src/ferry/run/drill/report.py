"""What drills find, and the report that each of them makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ferry import __version__
from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.decide.drill.figures import goals_of
from ferry.decide.drill.verdict import outcome_of
from ferry.errors import FerryError
from ferry.model import Plan
from ferry.model.evidence import (
    Check,
    Compared,
    EvidenceCluster,
    EvidenceKind,
    EvidenceReport,
    Goal,
    GroupMoved,
    Loss,
    Sample,
    TimelineStep,
)
from ferry.run.flow.connections import FlowConnections


@dataclass(slots=True, kw_only=True)
class Found:
    """What was found so far; a drill that ends early reports this much."""

    clusters: tuple[EvidenceCluster, ...] = ()
    losses: tuple[Loss, ...] = ()
    losses_at_ms: int = 0
    groups: tuple[GroupMoved, ...] = ()
    rto_s: float | None = None
    verification: Compared | None = None
    samples: tuple[Sample, ...] = ()
    checks: list[Check] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    paused: tuple[str, ...] = ()

    @property
    def equal(self) -> bool | None:
        """Whether the content is equal; None: it was not compared."""
        return None if self.verification is None else self.verification.equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """Which drill it was, of which flow in which lane, who began it, and what its RTO is taken of."""

    id: str
    kind: EvidenceKind
    flow: FlowConfig
    lane: str
    who: str
    rto_means: str = ""


def clusters_of(connections: FlowConnections) -> tuple[EvidenceCluster, ...]:
    """Both clusters as evidence names them."""
    return tuple(
        EvidenceCluster(alias=cluster.alias, cluster_id=cluster.cluster_id, brokers=len(cluster.brokers))
        for cluster in (connections.source, connections.target)
    )


def refused_by(plan: Plan) -> list[str]:
    """What a plan refuses, as a report names it."""
    return [f"{one.message} [{one.kind}]" for one in plan.refusals]


def goals_met(flow: FlowConfig, found: Found) -> tuple[Goal, ...]:
    """The flow's goals beside what was found; none when nobody looked what would be lost."""
    if not found.losses_at_ms:
        return ()
    return goals_of(
        losses=found.losses,
        rpo_seconds=flow.rpo.seconds,
        rto_s=found.rto_s,
        rto_seconds=flow.report.rto_seconds,
        groups=found.groups if found.rto_s is not None else None,
    )


def report_of(
    heading: Heading,
    found: Found,
    steps: Sequence[TimelineStep],
    *,
    began_ms: int,
    goals: tuple[Goal, ...],
    deviations: tuple[str, ...],
    summary: str,
    failure: FerryError | None,
    would: tuple[str, ...] = (),
) -> EvidenceReport:
    """The report of a drill that is over now; `failure` is why it ended early, if it did."""
    refusals = (*([str(failure)] if failure else []), *found.refusals)
    return EvidenceReport(
        id=heading.id,
        kind=heading.kind,
        flow=heading.flow.flow,
        lane=heading.lane,
        policy=heading.flow.policy_name,
        clusters=found.clusters,
        who=heading.who,
        version=__version__,
        began_ms=began_ms,
        ended_ms=wall_ms(),
        outcome=outcome_of(steps, refusals, deviations),
        summary=summary,
        steps=tuple(steps),
        goals=goals,
        losses=found.losses,
        losses_at_ms=found.losses_at_ms,
        rto_s=found.rto_s,
        rto_means="" if found.rto_s is None else heading.rto_means,
        groups=found.groups,
        verification=found.verification,
        samples=found.samples,
        checks=tuple(found.checks),
        would=would,
        deviations=deviations,
        refusals=refusals,
        notes=tuple(found.notes),
    )
