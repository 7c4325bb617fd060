"""The report of a switch: what its steps found, from the ledger, and the clusters as far as they answer."""

from __future__ import annotations

from ferry import __version__
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.decide.drill.switched import switch_report
from ferry.errors import Refused, Unreachable
from ferry.model.evidence import EvidenceCluster, EvidenceReport
from ferry.run.flow.connections import TargetConnection
from ferry.run.switch.history import one_switch


def report_of_switch(settings: Settings, flow: FlowConfig, switch: str, *, patience_s: float) -> EvidenceReport:
    """Of a switch along `flow` or back; raises as `one_switch`. A cluster that is down is named without its id."""
    state = one_switch(settings, flow, switch, patience_s=patience_s)
    via = state.switch.via
    chosen = next((one for one in settings.flows if one.flow == via), flow)
    back = next((one for one in settings.flows if one.flow == state.switch.back), None)
    source = _cluster(back, patience_s) if back is not None else None
    return switch_report(
        state,
        lane=chosen.lane,
        policy=chosen.policy_name,
        clusters=(
            source or EvidenceCluster(alias=via.source, cluster_id="", brokers=0),
            _cluster(chosen, patience_s) or EvidenceCluster(alias=via.target, cluster_id="", brokers=0),
        ),
        version=__version__,
        rpo_seconds=chosen.rpo.seconds,
        rto_seconds=chosen.report.rto_seconds,
    )


def _cluster(flow: FlowConfig, patience_s: float) -> EvidenceCluster | None:
    """The target of a flow; None when it does not answer."""
    try:
        with TargetConnection.of(flow, patience_s=patience_s) as connection:
            target = connection.target
            return EvidenceCluster(alias=target.alias, cluster_id=target.cluster_id, brokers=len(target.brokers))
    except (Unreachable, Refused):
        return None
