"""The target's answers that concern one partition alone, as drops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.model import RefusalKind, Slice
from ferry.protocol.drops import Blocked, Drop, drop

_HINDRANCES = {
    codes.NOT_ENOUGH_REPLICAS: RefusalKind.TOO_FEW_REPLICAS,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RefusalKind.TOO_FEW_REPLICAS,
    codes.KAFKA_STORAGE_ERROR: RefusalKind.STORAGE,
    codes.UNKNOWN_TOPIC_OR_PARTITION: RefusalKind.TARGET_CHANGED,
    codes.UNKNOWN_TOPIC_ID: RefusalKind.TARGET_CHANGED,
}
"""Conditions that only an operator can end, and of which `codes.advised` has the remedy."""


def leader_of(target: Cluster, piece: Slice, offset: int, code: str = "target.leaderless") -> int:
    """Return the broker that leads a slice's target partition.

    Raises Blocked if none does: a drop at the source offset, with the refusal `code`.
    """
    try:
        return target.leader(piece.target)
    except Retryable as error:
        raise Blocked([drop(code, piece, offset, why=str(error))]) from error


def out_of_time(piece: Slice, offset: int, cluster: str, said: Iterable[str | None]) -> Drop:
    """Return the drop for timestamps that the target does not take (INVALID_TIMESTAMP).

    It names the first text in `said`, the broker's messages, that is not empty.
    """
    words = next((word for word in said if word), "it does not say which")
    return drop("batch.timestamp", piece, offset, place=str(piece.target), cluster=cluster, at=offset, words=words)


def answered_drop(piece: Slice, offset: int, code: int, cluster: str, act: str, grant: str) -> Drop | None:
    """Return the drop for an error code that a broker answered for one partition.

    None for a code of the transaction, its producer or its coordinator: it concerns all partitions. A code that is not
    known here concerns its partition, and may pass.

    `act` is what was tried on the partition, `grant` the operation that it needs.
    """
    where: dict[str, Any] = {"place": str(piece.target), "cluster": cluster}
    if code in codes.UNAUTHORIZED:
        return drop("target.not-authorized", piece, offset, act=act, grant=grant, **where)
    if code in _HINDRANCES:
        kind, answer = _HINDRANCES[code], codes.advised(code)
        return drop("target.answers", piece, offset, kind=kind, passing=True, answer=answer, **where)
    if code in codes.OF_TRANSACTION:
        return None
    return drop("target.fails", piece, offset, passing=True, answer=codes.describe(code), **where)
