"""One rate for all tasks of a run, which do not communicate: each takes an equal part of it.

The program that starts the tasks limits how many run at once. The ledger shows which slots have ended.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.ledger.receipts import heard_receipts
from ferry.model import LedgerRecord, Plan, TopicPartition


def share(bytes_per_second: int, at_once: int, unfinished: int) -> float:
    """Return the bytes a second that one task may take, of a flow's rate.

    `at_once` is the most tasks that run at the same time. `unfinished` are the slots that are not known to have ended,
    the own one included. The number of running tasks never exceeds the smaller of the two, and a slot that has ended
    does not begin again. So the shares of the running tasks never add up to more than the rate, however late each task
    learns of the others' ends.
    """
    return bytes_per_second / max(1, min(at_once, unfinished))


class Unfinished:
    """The slots of a run whose slices the committed receipts do not cover yet.

    It follows the ledger's records as they are read. A slot that ends without having copied all (a refusal, the run's
    time) stays among them: it may be tried again.
    """

    def __init__(self, plan: Plan) -> None:
        self._lane = plan.lane
        self._generation = plan.generation
        self._slices = {piece.source: piece for piece in plan.kept}
        self._left: dict[int, set[TopicPartition]] = {}
        for piece in plan.kept:
            self._left.setdefault(piece.slot, set()).add(piece.source)

    def __len__(self) -> int:
        return sum(1 for places in self._left.values() if places)

    def hear(self, records: Iterable[LedgerRecord]) -> int | None:
        """Take in records of the ledger; return the offset of the first undecided one, from which to read again.

        A record that is read twice counts once.
        """
        receipts, first_open = heard_receipts(records, "last", self._lane, self._generation)
        for receipt in receipts:
            piece = self._slices.get(receipt.source)
            if piece is not None and receipt.end >= piece.end:
                self._left[piece.slot].discard(receipt.source)
        return first_open
