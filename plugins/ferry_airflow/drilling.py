"""What the tasks of a drill's DAG do, apart from Airflow: which drill it is, its preview, the drill, its report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from ferry.cli.identity import new_run
from ferry.config.flow.flow import FlowConfig, refuse_foreign_topic
from ferry.config.flow.start import Start, StartTime, parse_start
from ferry.config.settings import Settings
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput, FerryError, OutcomeUnknown
from ferry.features.drill.acts.full import FullDrill, FullOptions, switches_of
from ferry.features.drill.acts.partial import PartialDrill, PartialOptions
from ferry.features.drill.acts.shadow import ShadowDrill, ShadowOptions
from ferry.features.drill.acts.tabletop import tabletop
from ferry.features.drill.acts.timeline import Timeline
from ferry.features.evidence.acts.folder import ReportFolder, Written
from ferry.features.evidence.acts.store import why_unwritten
from ferry.features.switch.acts.drain import Copy
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind, EvidenceOutcome, EvidenceReport, TimelineStep
from ferry.model.switch import Step, StepDone, Verb
from ferry.run.local import copy_plan
from ferry_airflow.drill_fields import foreign_field
from ferry_airflow.measures import flag_of, names_of, seconds_of, size_of
from ferry_airflow.report_link import place_on_page
from ferry_airflow.report_places import nowhere
from ferry_airflow.switching import options_of, switch_id

WINDOW = timedelta(hours=1)
"""How far back a shadow drill copies unless the form sets it."""
LONGEST_ID = 90
"""The switches of a full drill are named after it, with a few letters more."""

Ended = tuple[EvidenceReport, FerryError | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run of the DAG is asked for: the trigger form, who does it, and who approved when (ms)."""

    settings: Settings
    flow: FlowConfig
    params: Mapping[str, Any]
    who: str
    run: str
    approved_by: str = ""
    approved_ms: int = 0
    copy: Copy = copy_plan
    opened: Callable[[str], None] = lambda run: None
    """Called with the id of each run of the live lane that a partial drill opens."""


class Drill(Protocol):
    """A drill that was asked for."""

    def preview(self) -> tuple[str, ...]:
        """Return what it would do; writes nothing."""

    def run(self, stop: Callable[[], bool], say: Callable[[str], None]) -> Ended:
        """Do all of it; return the report, and why it ended early, if it did."""


def drill_of(asked: Asked) -> Drill:
    """Return the drill that the form names; BadInput for a field that is wrong, or that belongs to another kind."""
    kind = EvidenceKind(asked.params["kind"])
    foreign = foreign_field(kind, asked.params)
    if foreign is not None:
        raise BadInput(foreign[1])
    for topic in names_of(asked.params, "topics"):
        refuse_foreign_topic(asked.flow, topic)
    return _DRILLS[kind](asked)


@dataclass(frozen=True, slots=True)
class _Tabletop:
    asked: Asked

    def preview(self) -> tuple[str, ...]:
        flow = self.asked.flow.flow
        return (f"look at {flow.source} and {flow.target}, and count what a failover would lose now",)

    def run(self, stop: Callable[[], bool], say: Callable[[str], None]) -> Ended:
        return tabletop(self.asked.settings, self.asked.flow, new_run("tabletop"), self.asked.who, _diary(stop, say))


@dataclass(frozen=True, slots=True)
class _Shadow:
    asked: Asked

    def _drill(self) -> ShadowDrill:
        params = self.asked.params
        options = ShadowOptions(
            lane=new_run("drill"),
            who=self.asked.who,
            start=_start(params.get("from")),
            topics=frozenset(names_of(params, "topics")) or None,
            max_bytes=size_of(params, "max_bytes"),
            clean=flag_of(params, "clean"),
        )
        return ShadowDrill(self.asked.flow, options)

    def preview(self) -> tuple[str, ...]:
        return self._drill().preview()[0]

    def run(self, stop: Callable[[], bool], say: Callable[[str], None]) -> Ended:
        return self._drill().run(_diary(stop, say))


@dataclass(frozen=True, slots=True)
class _Partial:
    asked: Asked

    def _drill(self) -> PartialDrill:
        asked = self.asked
        topics = frozenset(names_of(asked.params, "topics"))
        groups = frozenset(names_of(asked.params, "groups"))
        if not topics and not groups:
            raise BadInput("a partial drill needs topics or groups of the source: name one in topics or groups")
        options = PartialOptions(
            drill=new_run("partial"),
            who=asked.who,
            approved_by=asked.approved_by,
            approved_ms=asked.approved_ms,
            topics=topics,
            groups=groups or None,
            opened=asked.opened,
        )
        return PartialDrill(asked.flow, options)

    def preview(self) -> tuple[str, ...]:
        return self._drill().preview()

    def run(self, stop: Callable[[], bool], say: Callable[[str], None]) -> Ended:
        return self._drill().run(_diary(stop, say))


@dataclass(frozen=True, slots=True)
class _Full:
    asked: Asked

    def _drill(self) -> FullDrill:
        asked = self.asked
        options = FullOptions(
            drill=_full_id(asked),
            who=asked.who,
            approved_by=asked.approved_by,
            approved_ms=asked.approved_ms,
            switch=replace(options_of(asked.params), export=""),  # its form has no field for a file
        )
        return FullDrill(asked.settings, asked.flow, options, copy=asked.copy)

    def preview(self) -> tuple[str, ...]:
        self._stay()  # a wrong field is refused before a person approves
        return self._drill().preview()

    def run(self, stop: Callable[[], bool], say: Callable[[str], None]) -> Ended:
        def report(step: Step, done: StepDone | None) -> None:
            say(f"{step} ..." if done is None else f"    {done.evidence.sentence}")

        stay = self._stay()
        return self._drill().run(report, lambda: time.sleep(stay))

    def _stay(self) -> float:
        return seconds_of(self.asked.params, "stay_seconds") or 0.0


_DRILLS: Mapping[EvidenceKind, Callable[[Asked], Drill]] = {
    EvidenceKind.TABLETOP: _Tabletop,
    EvidenceKind.SHADOW: _Shadow,
    EvidenceKind.PARTIAL: _Partial,
    EvidenceKind.FULL: _Full,
}


def switches_to_drain(asked: Asked) -> tuple[tuple[Verb, str], ...]:
    """Return the switches whose drains copy in the live lanes, by verb and id: both of a full drill, none of others.

    None either if the file has no flow back, because a full drill does not begin then.
    """
    flow = asked.flow.flow
    back = Flow(source=flow.target, target=flow.source)
    if asked.params["kind"] != EvidenceKind.FULL or all(one.flow != back for one in asked.settings.flows):
        return ()
    return switches_of(_full_id(asked))


def _full_id(asked: Asked) -> str:
    return switch_id(asked.run, asked.params)[-LONGEST_ID:]


def reports_of(asked: Asked) -> ReportFolder:
    """Return where the report goes; BadInput for a place that is not allowed, Refused if it cannot be written there."""
    why = nowhere(asked.flow, asked.params)
    if why is not None:
        raise BadInput(why)
    folder = ReportFolder.of(asked.flow.report, str(asked.params.get("report") or asked.flow.report.folder))
    folder.prepare()
    return folder


def written(folder: ReportFolder, evidence: EvidenceReport) -> Written:
    """Write the report; OutcomeUnknown when the folder does not take it any more."""
    try:
        return folder.write(evidence)
    except OSError as error:
        raise OutcomeUnknown(
            f"the report could not be written to {folder.where} ({why_unwritten(error)}): keep this log, because it "
            "cannot be measured again"
        ) from error


def link_to(asked: Asked, report: Written) -> str:
    """Return where Airflow shows the report; empty if it does not: it shows the folder of the flow's file only."""
    return "" if asked.params.get("report") else place_on_page(asked.flow.flow, report.number)


def returned(evidence: EvidenceReport, report: Written) -> dict[str, Any]:
    """Return the outcome of a drill, and where its report is, for programs."""
    return {
        "id": evidence.id,
        "kind": evidence.kind.value,
        "outcome": evidence.outcome.value,
        "summary": evidence.summary,
        "deviations": list(evidence.deviations),
        "refusals": list(evidence.refusals),
        "report": report.document,
    }


def complaint(evidence: EvidenceReport, report: Written) -> str | None:
    """Return why the drill must not look green, in one sentence; None when all was as it should be."""
    if evidence.outcome is EvidenceOutcome.SUCCESS:
        return None
    wrong = dict.fromkeys((*evidence.refusals, *evidence.deviations))
    why = "; ".join(wrong) or evidence.summary
    return f"{evidence.kind} drill of {evidence.flow}: {evidence.outcome}: {why}; report: {report.page}"


def _start(text: str | None) -> Start:
    if not text:
        return StartTime(timestamp_ms=int((datetime.now(UTC) - WINDOW).timestamp() * 1000))
    try:
        return parse_start(text)
    except BadValue as error:
        raise BadInput(f"from: {error}") from None


def _diary(stop: Callable[[], bool], say: Callable[[str], None]) -> Timeline:
    def on_step(step: TimelineStep | str) -> None:
        say(f"{step} ..." if isinstance(step, str) else f"    {step.outcome} in {step.seconds:.1f} s: {step.detail}")

    return Timeline(on_step=on_step, stop=stop)
