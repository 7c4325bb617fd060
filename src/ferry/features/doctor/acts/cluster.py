"""Checks the clusters of a flow; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError
from ferry.features.doctor.acts.brokers import ask_brokers
from ferry.features.doctor.rules.findings import (
    of_cluster,
    of_first_run,
    of_readiness,
)
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.lane.checks import flow_checks
from ferry.lane.connections import EitherSide
from ferry.lane.session import one_cluster
from ferry.model.finding import Finding, Grade, failed, unknown
from ferry.run.micro_run import MicroRuns


def look_at_flow(flow: FlowConfig, *, patience_s: float) -> list[Finding]:
    """Return what was found of both clusters of a flow, of its permissions, and of what a run would refuse."""
    name = str(flow.flow)
    try:
        connections = EitherSide.of(flow, patience_s=patience_s)
    except FerryError as error:  # a secret that cannot be resolved, a store that cannot be read
        return [failed(name, "connection", error)]
    found: list[Finding] = []
    try:
        with connections:
            found = list(_of_both(flow, connections))
            has_ledger = flow.flow.target not in connections.down and connections.run(connections.has_ledger)
    except FerryError as error:
        down = connections.down
        if not down:
            return [*found, failed(name, "ledger" if found else "connection", error)]
        sides = {flow.flow.source: "source", flow.flow.target: "target"}
        return [failed(name, sides[alias], why) for alias, why in down.items()]
    if any(finding.grade is Grade.FAIL for finding in found):
        return [*found, unknown(name, "runs", "not checked, because of what failed above: correct that, and ask again")]
    try:
        return [*found, *(_of_runs(flow, patience_s) if has_ledger else _of_first_run(flow, patience_s))]
    except FerryError as error:
        return [*found, failed(name, "runs", error)]


def _of_both(flow: FlowConfig, connections: EitherSide) -> Iterator[Finding]:
    name = str(flow.flow)
    clusters = {"source": connections.source, "target": connections.target}
    seen = {}
    for side, cluster in clusters.items():
        if cluster.alias in connections.down:
            yield failed(name, side, connections.down[cluster.alias])
        else:
            seen[side] = connections.run(partial(ask_brokers, cluster)).facts
            yield of_cluster(name, side, seen[side])
    if len(seen) == len(clusters):
        same = one_cluster(flow, seen["source"].cluster_id, seen["target"].cluster_id)
        if same is not None:
            yield failed(name, "clusters", same)
    for check in flow_checks():
        yield from check(flow, connections)


def _of_runs(flow: FlowConfig, patience_s: float) -> Iterator[Finding]:
    rpo = Rpo(records=flow.rpo.records, seconds=flow.rpo.seconds)
    ready = check_readiness(flow, rpo, back=False, wants_back=False, patience_s=patience_s)
    return of_readiness(str(flow.flow), ready.checks)


def _of_first_run(flow: FlowConfig, patience_s: float) -> list[Finding]:
    with MicroRuns(flow, patience_s=patience_s) as runs:
        return of_first_run(str(flow.flow), runs.preview().refusals)
