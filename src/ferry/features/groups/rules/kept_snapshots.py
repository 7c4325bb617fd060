"""Which snapshots the ledger keeps without being asked, and what made each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferry.features.groups.rules.codec import Snapshot

KEPT_SNAPSHOTS = 10
"""So many runs' earlier group offsets stay in the ledger, and those of as many syncs and rollbacks without a run.

Named snapshots stay until they are dropped.
"""
RUN = "a run"

_MADE = re.compile(r"(groups|rollback)-\d{8}T\d{6}Z-[0-9a-f]{4}")
_IN_AIRFLOW = re.compile(r"groups@[^@]+@[^@]+@")
_VERBS = {"groups": "ferry groups sync", "rollback": "ferry groups rollback"}


def made_by(run: str) -> str:
    """Return what wrote to the ledger under an id: a command that made it by `new_run`, a task in Airflow, or a run."""
    made = _MADE.fullmatch(run)
    return _VERBS[made[1]] if made else "a sync in Airflow" if _IN_AIRFLOW.match(run) else RUN


def surplus(found: Iterable[Snapshot], run: str) -> list[str]:
    """Return the names of the snapshots, given oldest first, that are dropped when `run` takes one.

    Syncs may be more frequent than runs, and do not displace what was there before these. The id says which of both
    a snapshot is of: the ledger forgets runs, also those whose snapshots it keeps.
    """
    own = [one.name for one in found if not one.who and one.name != run]
    runs = [name for name in own if made_by(name) == RUN]
    others = [name for name in own if made_by(name) != RUN]
    (runs if made_by(run) == RUN else others).append(run)
    return runs[: max(0, len(runs) - KEPT_SNAPSHOTS)] + others[: max(0, len(others) - KEPT_SNAPSHOTS)]
