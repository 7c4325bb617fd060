"""A first configuration file: two clusters, one flow and the flow back as comments, TLS where it is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.text.properties import written


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCluster:
    """One side of the flow.

    `ca` is a PEM file of the authorities; with `tls` and no file, the system's authorities count.
    """

    alias: str
    servers: str
    tls: bool
    ca: str | None


def first_file(source: FirstCluster, target: FirstCluster, topics: str) -> str:
    """Return the text of the file."""
    flow, back = f"{source.alias}->{target.alias}", f"{target.alias}->{source.alias}"
    schedule = "ferry.schedule = */5 * * * *"
    lines = [
        "# MirrorMaker 2's own format; `ferry config explain KEY` says what a key does.",
        written("clusters", f"{source.alias}, {target.alias}"),
        *_cluster(source),
        *_cluster(target),
        "",
        f"{flow}.enabled = true",
        "# Java regular expressions, of which one must match the whole name.",
        written(f"{flow}.topics", topics),
        "# Groups without members on the target get the translated offsets of the source there.",
        f"{flow}.sync.group.offsets.enabled = true",
        "",
        "# When Airflow starts a run; none leaves it to you.",
        f"{flow}.{schedule}",
        "",
        "# The flow back. ferry switchover, failover and failback need it: remove the # before each of these lines.",
        f"#{back}.enabled = true",
        f"#{written(f'{back}.topics', topics)}",
        f"#{back}.sync.group.offsets.enabled = true",
        f"#{back}.{schedule}",
    ]
    return "\n".join(lines) + "\n"


def _cluster(cluster: FirstCluster) -> list[str]:
    lines = ["", written(f"{cluster.alias}.bootstrap.servers", cluster.servers)]
    if cluster.tls or cluster.ca is not None:
        lines.append(f"{cluster.alias}.security.protocol = SSL")
    if cluster.ca is not None:
        lines.append(f"{cluster.alias}.ssl.truststore.type = PEM")
        lines.append(written(f"{cluster.alias}.ssl.truststore.location", cluster.ca))
    return lines
