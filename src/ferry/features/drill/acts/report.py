"""The findings of drills, and the report that a drill makes of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ferry import __version__
from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError
from ferry.features.drill.acts.scratch_groups import ScratchGroups
from ferry.features.drill.rules.verdict import outcome_of
from ferry.features.evidence.rules.figures import LISTED, goals_of
from ferry.features.groups.rules.outside import named_with_reason, offsets_clause
from ferry.features.switch.acts.passed_over import look_at_passed
from ferry.lane.connections import FlowConnections
from ferry.model import Plan
from ferry.model.check import Check
from ferry.model.evidence import (
    Compared,
    EvidenceCluster,
    EvidenceKind,
    EvidenceReport,
    Goal,
    GroupMoved,
    Loss,
    PassedOver,
    Sample,
    TimelineStep,
)
from ferry.plan.rules.passed_over import passed_sentences
from ferry.words import count_of, several


@dataclass(slots=True, kw_only=True)
class Found:
    """The findings so far; a drill that ends early reports these."""

    clusters: tuple[EvidenceCluster, ...] = ()
    losses: tuple[Loss, ...] = ()
    losses_at_ms: int = 0
    passed_over: tuple[PassedOver, ...] | None = None
    groups: tuple[GroupMoved, ...] = ()
    all_groups: bool = True
    """Whether every group returned its offsets. Otherwise it is not known what the others would read twice."""
    of_groups: str = ""
    """Of which groups alone it is measured what they read twice; empty: of all."""
    rto_s: float | None = None
    from_start_s: float | None = None
    first_record_s: float | None = None
    first_record_means: str = ""
    verification: Compared | None = None
    samples: tuple[Sample, ...] = ()
    checks: list[Check] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    paused: tuple[str, ...] = ()

    def note_groups(self, groups: ScratchGroups) -> None:
        """Note the groups that did not return their offsets, those that cannot be moved, and those of no switch."""
        self.all_groups = self.all_groups and not groups.unreported
        self.notes += [f"{what} did not report their offsets: {why}" for what, why in sorted(groups.unreported.items())]
        if groups.hidden:
            self.of_groups = LISTED
        self.notes += [f"which other groups there are is not known: {why}" for why in sorted(groups.hidden)]
        if groups.shares:
            self.notes.append(
                f"{count_of(len(groups.shares), 'share group')} ({several(sorted(groups.shares))}) would not be moved: "
                "the offsets of share groups cannot be translated"
            )
        if groups.outside:
            self.notes.append(
                f"{offsets_clause(groups.outside, 'these topics')}, and no switch moves them: the file leaves them out "
                f"({named_with_reason(groups.outside)}): the figures are those of the other groups"
            )

    def note_passed_over(
        self, flow: FlowConfig, connections: FlowConnections, topics: Collection[str] | None = None
    ) -> None:
        """Note what the flow's lane has never copied on purpose, of its topics or of the `topics` alone."""
        passed = connections.run(lambda: look_at_passed(flow, connections))
        self.passed_over = tuple(one for one in passed if topics is None or one.source.topic in topics)
        self.notes += passed_sentences(self.passed_over, flow.flow.target)

    @property
    def knows_groups(self) -> bool:
        """Whether the source listed all its groups, and all that the file takes reported their offsets."""
        return self.all_groups and not self.of_groups

    @property
    def equal(self) -> bool | None:
        """Whether the content is equal; None: it was not compared."""
        return None if self.verification is None else self.verification.equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """Which drill it was, of which flow and lane, who began it, and from when to when its RTO is measured."""

    id: str
    kind: EvidenceKind
    flow: FlowConfig
    lane: str
    who: str
    rto_means: str = ""


def clusters_of(connections: FlowConnections) -> tuple[EvidenceCluster, ...]:
    """Return both clusters as they are named in a report."""
    return tuple(
        EvidenceCluster(alias=cluster.alias, cluster_id=cluster.cluster_id, brokers=len(cluster.brokers))
        for cluster in (connections.source, connections.target)
    )


def refused_by(plan: Plan) -> list[str]:
    """Return the refusals of a plan as they are named in a report."""
    return [f"{one.message} [{one.kind}]" for one in plan.refusals]


def goals_met(flow: FlowConfig, found: Found, *, moves: bool = True) -> tuple[Goal, ...]:
    """Return the flow's goals next to the findings; `moves`: whether the drill moves groups.

    It is empty if the drill did not begin.
    """
    if not found.clusters:
        return ()
    return goals_of(
        losses=found.losses if found.losses_at_ms else None,
        rpo_seconds=flow.rpo.seconds,
        rto_s=found.rto_s,
        rto_seconds=flow.report.rto_seconds,
        groups=found.groups if moves and (found.groups or not found.all_groups) else None,
        moves=moves,
        all_groups=found.all_groups,
        of=found.of_groups,
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
    """Make the report of a drill that has just ended; `failure` is why it ended early, if it did."""
    refusals = (*([str(failure)] if failure else []), *found.refusals)
    return EvidenceReport(
        id=heading.id,
        kind=heading.kind,
        flow=heading.flow.flow,
        lane=heading.lane,
        policy=heading.flow.topics.policy_name,
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
        passed_over=found.passed_over,
        rto_s=found.rto_s,
        rto_means="" if found.rto_s is None else heading.rto_means,
        from_start_s=found.from_start_s,
        first_record_s=found.first_record_s,
        first_record_means=found.first_record_means,
        groups=found.groups,
        verification=found.verification,
        samples=found.samples,
        checks=tuple(found.checks),
        would=would,
        deviations=deviations,
        refusals=refusals,
        notes=tuple(found.notes),
    )
