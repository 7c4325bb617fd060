"""The report of a switch: its steps from the ledger, and the clusters as far as they answer."""

from __future__ import annotations

from dataclasses import replace

from ferry import __version__
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.report import FOLDER
from ferry.config.settings import Settings
from ferry.errors import FerryError, Refused, Unreachable
from ferry.features.evidence.acts.folder import ReportFolder, Written
from ferry.features.evidence.acts.html import check_renderer
from ferry.features.evidence.acts.store import reason as why_unwritten
from ferry.features.switch.acts.sides import RETRIED_S
from ferry.features.switch.rules.drained import drain_runs, drained_samples
from ferry.features.switch.rules.report import switch_deviations, switch_report
from ferry.lane.connections import TargetConnection
from ferry.model.evidence import EvidenceCluster, EvidenceReport, Sample
from ferry.model.switch import STEPS, Step, SwitchState
from ferry.run.ledger.access import LedgerAccess


def report_of_switch(
    settings: Settings, flow: FlowConfig, state: SwitchState, *, patience_s: float, old_patience_s: float | None = None
) -> EvidenceReport:
    """Make the report of a switch along `flow` or back.

    If the cluster that was left does not answer, it is named without its id. `old_patience_s` is how long it is tried;
    None: `patience_s`. Raises Unreachable or Refused if the cluster that was switched to cannot be asked.
    """
    via, chosen = state.switch.via, _along(settings, flow, state)
    back = next((one for one in settings.flows if one.flow == state.switch.back), None)
    source = _old_cluster(back, patience_s if old_patience_s is None else old_patience_s)
    return switch_report(
        state,
        lane=chosen.lane,
        policy=chosen.topics.policy_name,
        clusters=(
            source or EvidenceCluster(alias=via.source, cluster_id="", brokers=0),
            _cluster(chosen, patience_s),
        ),
        version=__version__,
        rpo_seconds=chosen.rpo.seconds,
        rto_seconds=chosen.report.rto_seconds,
        samples=samples_of_drain(chosen, state, patience_s=patience_s),
    )


def deviations_of_switch(settings: Settings, flow: FlowConfig, state: SwitchState) -> tuple[str, ...]:
    """Return the deviations that the report of a switch along `flow` or back has, a sentence each."""
    chosen = _along(settings, flow, state)
    return switch_deviations(state, rpo_seconds=chosen.rpo.seconds, rto_seconds=chosen.report.rto_seconds)


def _along(settings: Settings, flow: FlowConfig, state: SwitchState) -> FlowConfig:
    """Return the flow along which clients were moved; `flow` if the file does not have it any more."""
    return next((one for one in settings.flows if one.flow == state.switch.via), flow)


def samples_of_drain(flow: FlowConfig, state: SwitchState, *, patience_s: float) -> tuple[Sample, ...]:
    """Return lag and rates while a switch drained `flow`, from its ledger; empty if it copied nothing."""
    if Step.DRAIN not in STEPS[state.switch.verb]:
        return ()
    with LedgerAccess(flow, patience_s=patience_s) as ledger:
        runs = drain_runs(ledger.view(), flow.lane, state.switch.id)
        return tuple(
            sample
            for opened in runs
            for sample in drained_samples(ledger.view_with(flow.lane, opened.record.run), opened)
        )


def kept_report(
    settings: Settings,
    flow: FlowConfig,
    state: SwitchState,
    *,
    folder: str | None = None,
    patience_s: float,
    asked_by: str = "",
    reason: str = "",
) -> tuple[Written | None, str | None]:
    """Write the report of a switch that has ended, to `folder` or the flow's report folder.

    Only once, even if called again. `asked_by` and `reason` are what Airflow has of its beginning. Return where it is,
    and why it could not be written, a sentence with the remedy. Clients have moved, so that is not a failure of the
    switch. Both are None if no folder is named.
    """
    if folder is None and not flow.report.is_named:
        return None, None
    switch = state.switch
    try:
        check_renderer()
        reports = ReportFolder.of(flow.report, folder)
        evidence = report_of_switch(
            settings, flow, state, patience_s=patience_s, old_patience_s=_old_patience_s(state, patience_s)
        )
        return reports.write(replace(evidence, asked_by=asked_by, reason=reason), once=True), None
    except OSError as error:
        why = f"{folder or flow.report.folder} cannot be written: {why_unwritten(error)}"
    except FerryError as error:
        why = str(error)
    return None, (
        f"{switch.verb} {switch.id} is over, but its report was not written ({why}): correct that, or {FOLDER}, then "
        f"ferry reports switch '{flow.flow}' {switch.id}"
    )


def _old_patience_s(state: SwitchState, patience_s: float) -> float:
    """Return how long the cluster that was left is tried, which may have been lost."""
    is_lost = state.fact(Step.STOP, "source_answers") is False
    return min(patience_s, RETRIED_S) if is_lost else patience_s


def _cluster(flow: FlowConfig, patience_s: float) -> EvidenceCluster:
    """Return the target of a flow. Raises Unreachable or Refused if it does not answer."""
    with TargetConnection.of(flow, patience_s=patience_s) as connection:
        target = connection.target
        return EvidenceCluster(alias=target.alias, cluster_id=target.cluster_id, brokers=len(target.brokers))


def _old_cluster(back: FlowConfig | None, patience_s: float) -> EvidenceCluster | None:
    """Return the cluster that was left; None if it does not answer, or if the file has no flow to it."""
    try:
        return None if back is None else _cluster(back, patience_s)
    except (Unreachable, Refused):
        return None
