"""What a drill shows of identical offsets."""

from __future__ import annotations

from ferry.messages.catalogue import sentence
from ferry.model.check import Check

NAME = "Records have identical offsets"


def offsets_check(records: int, *, equal: bool) -> Check:
    """Return whether the copies have the source's offsets.

    `records` were compared with the target's records at the same offsets. `equal`: nothing differs, and all was
    compared.
    """
    code = "identical.compared" if equal else "identical.compared.not"
    return Check(name=NAME, ok=equal, message=sentence(code, records=records))
