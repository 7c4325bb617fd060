"""How the ledger topic must be set up so that no acknowledged receipt is lost; pure."""

from __future__ import annotations

from collections.abc import Mapping

SAFE_REPLICAS = 3
"""Number of replicas from which on two of them must have a record before it counts."""


NOT_READY = {"unclean.leader.election.enable": "true"}
"""The setting of a ledger while it is being rebuilt: `settings_refusal` lets no run begin in it."""


def wanted_replicas(configured: int, brokers: int) -> int:
    """Return the replicas of the ledger: as configured, as far as the cluster has brokers."""
    return min(configured, brokers)


def wanted_in_sync(replicas: int) -> int:
    """Return its `min.insync.replicas`. With 1, three replicas could lose what only the leader had."""
    return 2 if replicas >= SAFE_REPLICAS else 1


def created_with(replicas: int) -> dict[str, str]:
    """Return the settings that a new ledger gets."""
    return {
        "cleanup.policy": "compact",
        "min.insync.replicas": str(wanted_in_sync(replicas)),
        "unclean.leader.election.enable": "false",
        "compression.type": "producer",
        # By the broker's clock, so that our clock can be compared with it.
        "message.timestamp.type": "LogAppendTime",
        # Compaction leaves the newest segment alone: with small segments, every run reads less.
        "segment.bytes": str(64 << 20),
        "segment.ms": str(24 * 3600 * 1000),
        "min.cleanable.dirty.ratio": "0.2",
    }


def settings_refusal(
    where: str, *, partitions: int, replicas: int, wanted: int, configs: Mapping[str, str]
) -> str | None:
    """Return what is wrong with a ledger's settings, and the remedy; None when it keeps receipts.

    `replicas` are those of its partition, `wanted` is `wanted_replicas`. A setting that is not shown counts as wrong.
    """
    if partitions != 1:
        return f"{where} has {partitions} partitions where one is needed: move it away and let Ferry create it"
    if replicas < wanted:
        return (
            f"{where} has replication factor {replicas} where {wanted} is needed: add replicas with "
            f"kafka-reassign-partitions.sh, or set ferry.ledger.replication.factor to {replicas} to do with less"
        )
    for name, value in (("cleanup.policy", "compact"), ("unclean.leader.election.enable", "false")):
        if configs.get(name) != value:
            return f"{where} has {name}={configs.get(name)}, which can lose receipts: set it to {value}"
    name, needed = "min.insync.replicas", wanted_in_sync(replicas)
    found = configs.get(name, "")
    if not found.isdecimal() or int(found) < needed:
        return f"{where} has {name}={found or None}, which can lose receipts: set it to {needed}"
    return None
