"""Ledgers as this process knows them: read whole once, then only what came since."""

from __future__ import annotations

import time

from ferry.decide.ledger import LedgerView, fold, fold_on, resume_at
from ferry.net.cluster import Cluster
from ferry.net.ledger import LedgerTopic

FRESH_SECONDS = 300.0
"""How long after a reading it is read on from there. Compaction drops a tombstone after delete.retention.ms, a day
unless set: a view older than that would keep what was taken back."""


class KnownLedger:
    """Views of one ledger, each read on from the one before."""

    def __init__(self, ledger: LedgerTopic) -> None:
        self._ledger = ledger
        self._view: LedgerView | None = None
        self._topic_id = ""
        self._read_at = 0.0

    async def view(self) -> LedgerView:
        """Everything up to the ledger's end now; raises as `LedgerTopic.read`, and BadInput for a newer format."""
        end = await self._ledger.end()
        known, topic_id = self._view, self._ledger.topic_id
        if known is None or end < known.end or topic_id != self._topic_id or self._is_old():
            view = fold(*await self._ledger.read(None, end))
        else:
            view = fold_on(known, *await self._ledger.read(resume_at(known), end))
        self._view, self._topic_id, self._read_at = view, topic_id, time.monotonic()
        return view

    def learn(self, view: LedgerView) -> None:
        """Take over what somebody else read on from the last view, so that it is not read again."""
        self._view, self._read_at = view, time.monotonic()

    def _is_old(self) -> bool:
        return time.monotonic() > self._read_at + FRESH_SECONDS


class KnownLedgers:
    """The ledgers of a flow and of its neighbours, by cluster and source alias."""

    def __init__(self) -> None:
        self._known: dict[tuple[Cluster, str], KnownLedger] = {}

    def of(self, cluster: Cluster, source_alias: str) -> KnownLedger:
        """The ledger on `cluster` of the flows that come from `source_alias`."""
        return self._known.setdefault((cluster, source_alias), KnownLedger(LedgerTopic(cluster, source_alias)))
