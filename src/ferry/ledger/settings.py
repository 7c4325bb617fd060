"""How the ledger topic must be set up so that no acknowledged receipt is lost; pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ferry.messages.catalogue import sentence
from ferry.model import Sentence

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
    ledger: str, cluster: str, *, partitions: int, replicas: int, wanted: int, configs: Mapping[str, str]
) -> Sentence | None:
    """Return what is wrong with the settings of a cluster's ledger, and the remedy; None when it keeps receipts.

    `replicas` are those of its partition, `wanted` is `wanted_replicas`. A setting that is not shown counts as wrong.
    """
    if partitions != 1:
        return sentence("ledger.partitions", ledger=ledger, cluster=cluster, partitions=partitions)
    if replicas < wanted:
        return sentence("ledger.replicas", ledger=ledger, cluster=cluster, replicas=replicas, wanted=wanted)
    lossy = partial(sentence, "ledger.may-lose", ledger=ledger, cluster=cluster)
    for name, value in (("cleanup.policy", "compact"), ("unclean.leader.election.enable", "false")):
        if configs.get(name) != value:
            return lossy(setting=name, found=str(configs.get(name)), needed=value)
    name, needed = "min.insync.replicas", wanted_in_sync(replicas)
    found = configs.get(name, "")
    if not found.isdecimal() or int(found) < needed:
        return lossy(setting=name, found=str(found or None), needed=str(needed))
    return None
