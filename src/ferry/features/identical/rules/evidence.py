"""What a drill shows of identical offsets."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.messages.catalogue import sentence
from ferry.model.check import Check

NAME = "Records have identical offsets"


def offsets_checks(kept: Sequence[tuple[int, bool]]) -> list[Check]:
    """Return the check whether copies have the source's offsets; empty if none is to have them.

    `kept` has for each comparison how many records were compared with the target's records at the same offsets. It also
    has whether that is equal: nothing differs, and all was compared.
    """
    if not kept:
        return []
    records, equal = sum(count for count, _ in kept), all(same for _, same in kept)
    code = "identical.compared" if equal else "identical.compared.not"
    return [Check(name=NAME, ok=equal, message=sentence(code, records=records))]
