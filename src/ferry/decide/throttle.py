"""One rate for all tasks of a run, which do not talk to each other: each takes an equal part of it.

How many can be at work at once is bounded by whoever starts them; which slots have come to their end is in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.decide.ledger_codec import decode_key, decode_value, parse_receipt
from ferry.model import Fate, LedgerRecord, Plan, TopicPartition


def share(bytes_per_second: int, at_once: int, unfinished: int) -> float:
    """The bytes a second that one task may take, of a flow's rate.

    `at_once` is the most tasks that are at work at the same time, `unfinished` the slots that are not known to have
    come to their end, the own one included. At no time are more tasks at work than the smaller of the two, and a slot
    that has ended does not begin again; so the shares of those at work never add up to more than the rate, however
    late each of them hears of the others' ends.
    """
    return bytes_per_second / max(1, min(at_once, unfinished))


class Unfinished:
    """The slots of a run whose slices the committed receipts do not cover yet, from the ledger's records as they come.

    A slot that ends without having copied all (a refusal, the run's time) stays among them: it may be tried again.
    """

    def __init__(self, plan: Plan) -> None:
        self._lane = plan.lane
        self._generation = plan.generation
        self._slices = {piece.source: piece for piece in plan.slices}
        self._left: dict[int, set[TopicPartition]] = {}
        for piece in plan.slices:
            self._left.setdefault(piece.slot, set()).add(piece.source)

    def __len__(self) -> int:
        return sum(1 for places in self._left.values() if places)

    def hear(self, records: Iterable[LedgerRecord]) -> int | None:
        """Take in records of the ledger; the offset of the first undecided one, from which to read again.

        What is heard twice counts once.
        """
        first_open: int | None = None
        for record in records:
            if record.fate is Fate.OPEN and first_open is None:
                first_open = record.offset
            if record.fate is not Fate.COMMITTED or record.value is None:
                continue
            if decode_key(record.key)[:2] != ["last", self._lane]:
                continue
            receipt = parse_receipt(decode_value(record.value, f"ledger record at offset {record.offset}"))
            piece = self._slices.get(receipt.source)
            if piece is not None and receipt.generation == self._generation and receipt.end >= piece.end:
                self._left[piece.slot].discard(receipt.source)
        return first_open
