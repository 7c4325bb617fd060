"""The JSON answer of `ferry ledger rebuild`: a contract, described in docs/json.md with a schema."""

from __future__ import annotations

from pathlib import Path

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import many
from ferry.features.archive.acts.rebuild import Ahead, Rebuilt
from ferry.ledger.codec import TARGET
from ferry.model import Flow

_AHEAD = Form(
    Ahead,
    *TARGET,
    F("exported", least=None, says="the source offset up to which the export has it; 0: it has nothing of it"),
    F("copied", least=None, says="the source offset up to which it was copied"),
)

REBUILT = Form(
    Rebuilt,
    F(
        "replaced",
        says="records of a ledger that runs had begun after the loss, and that was deleted; nothing was copied by it",
    ),
    F(
        "carried",
        says="those of them that were written after the export's: pauses, Ferry's ACLs, where lanes began",
    ),
    F(
        "ahead",
        kind=many(_AHEAD.kind),
        says="partitions that were copied further than the export has them, by the lane's positions",
    ),
)
"""What became of a ledger that was begun after the loss."""


def rebuilt_json(flow: Flow, file: Path, done: Rebuilt, *, dry_run: bool) -> Json:
    """Return the answer of `ferry ledger rebuild`."""
    head = {"flow": str(flow), "file": str(file), "records": done.records, "upto": done.upto, "dry_run": dry_run}
    return {**head, **REBUILT.dump(done)}
