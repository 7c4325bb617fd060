"""Why no run is opened, or a run must not continue: its ledger, its clusters, a newer run or attempt."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

RUNS: Mapping[str, Entry] = {
    # A ledger whose topic would not keep receipts.
    "ledger.partitions": Entry(
        None,
        "ledger {ledger} on cluster {cluster} has {partitions} partitions where one is needed",
        "move it away and let Ferry create it",
    ),
    "ledger.replicas": Entry(
        None,
        "ledger {ledger} on cluster {cluster} has replication factor {replicas} where {wanted} is needed",
        "add replicas with kafka-reassign-partitions.sh, or set ferry.ledger.replication.factor to {replicas} to do "
        "with less",
    ),
    "ledger.may-lose": Entry(
        None,
        "ledger {ledger} on cluster {cluster} has {setting}={found}, which can lose receipts",
        "set it to {needed}",
    ),
    # Clusters that are not the two of the flow.
    "clusters.same": Entry(
        None,
        "source {source} and target {target} are the same cluster ({cluster})",
        "correct one of the bootstrap servers ({source_line}, {target_line})",
    ),
    "clusters.swapped": Entry(
        None,
        "aliases {source} and {target} are swapped: the cluster that {source} leads to has this flow's ledger "
        "{ledger}, written from the one that {target} leads to now",
        "correct the bootstrap servers ({source_line}, {target_line}), or use other aliases",
    ),
}
