"""A partial drill: some topics in the live lane and the groups on them, with the copies and offsets that count.

It does what a run does, for these alone. Then it checks where the groups continue on the target, and whether the
content is equal. It moves no client and pauses nothing, so nothing has to be undone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Refused
from ferry.features.drill.acts.copying import copy_seen
from ferry.features.drill.acts.looking import compare_content, read_groups, split_transformed
from ferry.features.drill.acts.report import Found, Heading, clusters_of, goals_met, refused_by, report_of
from ferry.features.drill.acts.scratch_groups import Rehearsed, ScratchGroups
from ferry.features.drill.acts.timeline import Timeline
from ferry.features.drill.rules.verdict import loss_sentence, partial_sentence
from ferry.features.evidence.rules.figures import Committed, deviations_of, losses_of, samples_of, untried
from ferry.features.groups.acts.of_run import sync_groups
from ferry.features.verify.acts.wanted import Wanted
from ferry.lane.connections import FlowConnections
from ferry.model.evidence import (
    EvidenceKind,
    EvidenceReport,
)
from ferry.plan.lag import measure_lag
from ferry.plan.options import RunOptions
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.words import count_of

MOST_RUNS = 10
"""The most runs until nothing is left to copy; producers may continue meanwhile."""

RTO_MEANS = "from the first group offset written until the groups' next records were read at the target"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialOptions:
    """The source topics and the groups of the drill; at least one of the two is named.

    Without topics, it takes those that the groups have offsets of. With `groups` None, it takes all groups of the flow
    that have offsets of the topics.
    """

    drill: str
    who: str
    approved_by: str
    approved_ms: int
    topics: frozenset[str] = frozenset()
    groups: frozenset[str] | None = None
    opened: Callable[[str], None] = lambda run: None
    """Called with the id of each run of the live lane before it copies.

    What that run commits stays, even if the drill ends early.
    """


class PartialDrill:
    """One partial drill. `preview` returns what it would do; `run` does it."""

    def __init__(self, flow: FlowConfig, options: PartialOptions, *, patience_s: float = 60.0) -> None:
        """Choose the flow."""
        self._flow = flow
        self._options = options
        self._patience_s = patience_s
        self._topics = options.topics
        """The topics that were named, or that were found in the first step."""

    def preview(self) -> tuple[str, ...]:
        """Return what the drill would do, without a request to a cluster."""
        groups = "the groups on them" if self._options.groups is None else ", ".join(sorted(self._options.groups))
        topics = ", ".join(sorted(self._options.topics)) or f"the topics that {groups} have offsets of"
        target = self._flow.flow.target
        return (
            f"run {self._flow.flow} for {topics} alone until nothing is left to copy",
            f"write the offsets of {groups} on {target}, as each run does",
            f"read where they continue on {target}, and compare it with what the source has there",
            "compare the copies with the source, record by record",
        )

    def run(self, diary: Timeline) -> tuple[EvidenceReport, FerryError | None]:
        """Do all steps, and return the report; also why the drill ended early, if it did."""
        found, failure = Found(), None
        try:
            with FlowConnections.of(self._flow, patience_s=self._patience_s) as connections:
                self._look(diary, found, connections)
                self._copy(diary, found)
                self._groups(diary, found, connections)
                self._verify(diary, found)
        except FerryError as error:
            failure = error
        return self._report(diary, found, failure), failure

    def _look(self, diary: Timeline, found: Found, connections: FlowConnections) -> None:
        with diary.step("look", "Read both clusters") as entry:
            connections.run(connections.ledger.find)
            found.clusters = clusters_of(connections)
            self._topics = self._topics or self._of_groups(connections)
            found.notes += self._leave_transformed()
            lags = measure_lag(self._flow, only=self._topics, patience_s=self._patience_s)
            found.losses, found.losses_at_ms = losses_of(lags), wall_ms()
            found.note_passed_over(self._flow, connections, self._topics)
            entry.detail = count_of(len(found.losses), "partition")

    def _of_groups(self, connections: FlowConnections) -> frozenset[str]:
        """Return the flow's topics that the named groups have offsets of. Raises Refused for a group without one."""
        groups = ScratchGroups(flow=self._flow, connections=connections, only=self._options.groups)
        standings = connections.run(lambda: groups.standings(None))
        self._refuse_missing(standings, groups, "the flow's topics")
        return frozenset(one.source.topic for some in standings.values() for one in some)

    def _refuse_missing(self, standings: Collection[str], groups: ScratchGroups, where: str) -> None:
        missing = sorted((self._options.groups or frozenset()) - set(standings))
        unknown = [why for group in missing if (why := groups.unreported.get(f"group {group}")) is not None]
        if unknown:
            raise Refused(unknown[0])
        if missing:
            raise Refused(
                f"group {missing[0]} of {self._flow.flow.source} has no offset on {where}, or the flow leaves it out: "
                "correct --group"
            )

    def _leave_transformed(self) -> list[str]:
        """Narrow the drill to topics whose next records can be compared with the source's.

        Return a sentence for each other one.
        """
        others, notes = split_transformed(self._flow, self._topics, named=bool(self._options.topics))
        self._topics = others
        return notes

    def _copy(self, diary: Timeline, found: Found) -> None:
        approved = (self._options.approved_by, self._options.approved_ms)
        chunks: list[Committed] = []
        with (
            diary.step("copy", "Copy what is left", approved=approved) as entry,
            MicroRuns(self._flow, patience_s=self._patience_s) as runs,
        ):
            began, records, offsets = wall_ms(), 0, 0
            for number in range(1, MOST_RUNS + 1):
                plan = runs.open_new(f"{self._options.drill}-{number}", local_origin(), RunOptions(only=self._topics))
                found.refusals += refused_by(plan)
                found.paused = plan.held_back
                if not plan.kept:
                    break
                self._options.opened(plan.run)
                failure = copy_seen(runs, plan, diary.stop, chunks)
                offsets += sum(piece.offsets for piece in plan.kept)
                found.samples = samples_of(began, offsets, chunks)
                if failure is not None:
                    raise failure
                if diary.stop():
                    raise Refused("stopped by a signal while copying: start the drill again")
                records += runs.report(plan.run).records
                if found.refusals:
                    break
            else:
                found.notes.append(f"producers were faster than {MOST_RUNS} runs: not all of the topics is copied")
            entry.detail = f"{count_of(records, 'record')} in {count_of(number, 'run')}"

    def _groups(self, diary: Timeline, found: Found, connections: FlowConnections) -> None:
        approved = (self._options.approved_by, self._options.approved_ms)
        groups = ScratchGroups(flow=self._flow, connections=connections, only=self._options.groups)
        began = wall_ms()
        with (
            diary.step("groups", "Write the groups' offsets", approved=approved) as entry,
            MicroRuns(self._flow, patience_s=self._patience_s) as runs,
        ):
            standings = connections.run(lambda: groups.standings(self._topics))
            found.note_groups(groups)
            self._refuse_missing(standings, groups, "these topics")
            left: dict[str, str] = {}
            if standings:
                run = f"{self._options.drill}-groups-{secrets.token_hex(2)}"
                _, outcome = sync_groups(runs, run, only=frozenset(standings))
                left = {} if outcome is None else {one.group: one.message for one in outcome.left}
            entry.detail = f"{len(standings) - len(left)} of {count_of(len(standings), 'group')}"
        done = Rehearsed(standings=standings, refused={group: why for group, why in left.items() if group in standings})
        read_groups(diary, found, groups, done, self._options.drill, began_ms=began, patience_s=self._patience_s)

    def _verify(self, diary: Timeline, found: Found) -> None:
        with diary.step("verify", "Compare the content of both clusters") as entry:
            wanted = Wanted(topics=self._topics)
            compare_content(self._flow, wanted, entry, found, patience_s=self._patience_s)

    def _report(self, diary: Timeline, found: Found, failure: FerryError | None) -> EvidenceReport:
        flow, options = self._flow, self._options
        goals = goals_met(flow, found)
        left = tuple(
            f"group {one.group} was left: {one.note}" for one in found.groups if not one.committed and one.note
        )
        paused = untried((), found.paused)
        loss = loss_sentence(found.losses, flow.flow.source, found.passed_over, part=True)
        topics, target = sorted(self._topics), flow.flow.target
        text = partial_sentence(topics, found.equal, found.groups, target, knows_groups=found.knows_groups)
        return report_of(
            Heading(
                id=options.drill,
                kind=EvidenceKind.PARTIAL,
                flow=flow,
                lane=flow.lane,
                who=options.who,
                rto_means=RTO_MEANS,
            ),
            found,
            diary.steps,
            began_ms=diary.began_ms,
            goals=goals,
            deviations=(*paused, *deviations_of(goals, found.groups, found.verification, found.checks), *left),
            summary=str(failure) if failure else f"{text}; {loss}",
            failure=failure,
        )
