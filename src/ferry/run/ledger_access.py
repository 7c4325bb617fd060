"""The ledger of a flow without the flow: for looking things up and for pausing, even while the source is down."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from ferry.config.flow import FlowConfig
from ferry.decide.ledger import LedgerView
from ferry.model import Record
from ferry.run.connections import TargetConnection
from ferry.run.planner import DEFAULT_LEDGER_REPLICATION


class LedgerAccess:
    """A connection to a flow's target, for its ledger alone. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, patience_s: float = 60.0) -> None:
        """`patience_s`: how long an unreachable target is tried."""
        self._connection = TargetConnection.of(flow, patience_s=patience_s)
        self._factor = flow.ledger_replication_factor or DEFAULT_LEDGER_REPLICATION

    def __enter__(self) -> Self:
        """Connect; Unreachable when the target does not answer."""
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def exists(self) -> bool:
        """Whether the flow has a ledger yet."""
        return self._connection.run(self._connection.has_ledger)

    def view(self) -> LedgerView:
        """The whole ledger, folded; BadInput when there is none, for the flow never ran."""
        return self._connection.run(self._connection.view)

    def append(self, records: Sequence[Record]) -> None:
        """Write records, and create the ledger first when there is none; Refused when its settings could lose them."""
        ledger = self._connection.ledger

        async def work() -> None:
            await ledger.open(self._factor)
            await ledger.append(records)

        self._connection.run(work)
