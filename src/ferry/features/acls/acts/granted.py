"""Checks for `ferry doctor` whether the clusters of a flow have the ACLs that the flow needs; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.principal import principal_of
from ferry.config.keys.layers import SIDES, Side
from ferry.errors import BadInput, Refused, Unreachable
from ferry.features.acls.rules.grants import of_grants
from ferry.kafka.admin.acls import NoAuthorizer, described_acls
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.connections import EitherSide
from ferry.model.finding import Finding, Grade, unknown
from ferry.plan.rules.permissions import required_acls


def check_grants(flow: FlowConfig, connections: EitherSide) -> Iterator[Finding]:
    """Yield a finding for each cluster that answers (`ferry.lane.checks`)."""
    clusters = {"source": connections.source, "target": connections.target}
    for side in SIDES:
        if clusters[side].alias not in connections.down:
            yield _grants(flow, connections, side, clusters[side])


def _grants(flow: FlowConfig, connections: EitherSide, side: Side, cluster: Cluster) -> Finding:
    name, check = str(flow.flow), f"{side} ACLs"
    try:
        acls = connections.run(lambda: described_acls(cluster))
        required = required_acls(flow)
    except NoAuthorizer:
        message = f"cluster {cluster.alias} has no authorizer: every client may read and write everything there"
        return Finding(about=name, check=check, grade=Grade.PASS, message=message)
    except (Refused, Unreachable, BadInput) as error:
        return unknown(name, check, error)
    principal = principal_of(flow, side)
    return of_grants(name, side, required, acls, principal.name, principal.why)
