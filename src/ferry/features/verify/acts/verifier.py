"""Compares the two clusters of a flow: survey both, compare what was copied by the ledger, sum up."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ferry.config.client_options import ConnectionOptions
from ferry.config.flow.clients import flow_fetch_options
from ferry.config.flow.flow import FlowConfig
from ferry.features.verify.acts.compare import Compared, CompareLimits, Comparer, Progress, unheard
from ferry.features.verify.acts.survey import Survey, survey
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.acts.wire_reader import WireReader
from ferry.features.verify.acts.without_ledger import survey_by_content
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.moved_records import with_moved
from ferry.features.verify.rules.repartitioned import DealtCopy, not_applied
from ferry.features.verify.rules.transformed import NEEDS_SPARK, without_spark
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.lane.connections import FlowConnections
from ferry.ledger.receipts import last_receipts, open_receipts
from ferry.ledger.unit_codec import last_units, open_units
from ferry.model import OWN_READER, Difference, DifferenceKind, Flow, NotComparedKind, TopicPartition, Verified
from ferry.plan.gather import isolation_of
from ferry.plan.rules.record_sample import record_samples

if TYPE_CHECKING:
    from ferry.features.verify.acts.independent import IndependentReader

_SECRET_BYTES = 32

NOTHING = "no record was compared: of what was asked for there is none"

ABORTED = (
    "librdkafka shows no record of an aborted transaction: if the flow copied such records earlier, when its "
    "isolation.level was read_uncommitted, compare without --independent"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSpec:
    """All that a process needs to compare some ranges; travels pickled, its secrets never in text."""

    flow: Flow
    spans: tuple[CompareRange, ...]
    dealt: tuple[DealtCopy, ...] = ()
    source: ConnectionOptions = field(repr=False)
    target: ConnectionOptions = field(repr=False)
    limits: CompareLimits
    secret: bytes = field(repr=False)
    """Keys the digests of records: the same in all processes of a comparison."""
    values: bool
    patience_s: float


def compare_spec(spec: CompareSpec) -> Compared:
    """Compare what a spec names, over connections of its own; Unreachable when a cluster does not answer."""
    with FlowConnections(spec.flow, spec.target, spec.source, patience_s=spec.patience_s) as connections:
        comparer = Comparer(WireReader(connections, spec.limits), record_samples(spec.secret, values=spec.values))
        return connections.run(lambda: comparer.compare(spec.spans))


class Verifier:
    """A comparison of a flow's clusters. Use as a context manager: survey, compare, then sum up."""

    def __init__(
        self,
        flow: FlowConfig,
        wanted: Wanted,
        *,
        values: bool = False,
        independent: bool = False,
        patience_s: float = 60.0,
    ) -> None:
        """Check what is wanted; `values`: whether a difference shows keys and values.

        `independent`: librdkafka reads both sides, and not Ferry's own fetch. Raises BadInput for options that
        contradict each other, Refused for a property of the flow that librdkafka does not have.
        """
        wanted.check()
        self._flow = flow
        self._wanted = wanted
        self._secret = secrets.token_bytes(_SECRET_BYTES)
        self._values = values
        self._patience_s = patience_s
        self._limits = CompareLimits(
            memory_bytes=flow.copy.task_memory_bytes, isolation=isolation_of(flow), fetch=flow_fetch_options(flow)
        )
        self._independent = self._independent_reader() if independent else None
        self._connections = FlowConnections.of(flow, patience_s=patience_s)
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        """Connect to both clusters; Unreachable names the one that does not answer."""
        self._connections.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connections.close()

    def _independent_reader(self) -> IndependentReader:
        from ferry.features.verify.acts.independent import IndependentReader  # noqa: PLC0415 - few runs need librdkafka

        limits = self._limits
        return IndependentReader(
            self._flow,
            memory_bytes=limits.memory_bytes,
            fetch=limits.fetch,
            committed=limits.isolation == READ_COMMITTED,
            patience_s=self._patience_s,
        )

    def survey(self) -> Survey:
        """Return what there is to compare.

        Raises BadInput when nothing of it was copied, or the flow takes none of it.
        """
        look = survey_by_content if self._wanted.without_ledger else survey
        return self._connections.run(lambda: look(self._flow, self._connections, self._wanted))

    def spec(self, spans: Sequence[CompareRange], repartitioned: Sequence[DealtCopy] = ()) -> CompareSpec:
        """Make what another process needs to compare some of the ranges, or of the repartitioned copies."""
        return CompareSpec(
            flow=self._flow.flow,
            spans=tuple(spans),
            dealt=tuple(repartitioned),
            source=self._connections.source_options,
            target=self._connections.target_options,
            limits=self._limits,
            secret=self._secret,
            values=self._values,
            patience_s=self._patience_s,
        )

    def compare(
        self,
        found: Survey,
        progress: Progress = unheard,
        transformed: Callable[[Survey], Compared] | None = None,
    ) -> Compared:
        """Compare all ranges in this process; Unreachable when a cluster does not answer any more.

        `transformed` compares those that a transform made. Without it they are left, with a sentence each.
        """
        see = record_samples(self._secret, values=self._values)
        if self._independent is not None:
            with self._independent as reader:
                comparer = Comparer(reader, see)
                compared = self._connections.run(lambda: comparer.compare(found.spans, progress))
        else:
            comparer = Comparer(WireReader(self._connections, self._limits), see)
            compared = self._connections.run(lambda: comparer.compare(found.spans, progress))
        if transformed is None:
            compared.not_compared += without_spark(found.transformed)
            compared.not_compared += not_applied(found.dealt, NEEDS_SPARK, NotComparedKind.NEEDS_SPARK)
        elif found.transformed or found.dealt:
            compared.add(transformed(found))
        return compared

    @property
    def asked(self) -> bool:
        """Report whether certain offsets were asked for, so that each one left out must be reported."""
        return self._wanted.start is not None or self._wanted.run is not None

    def sum_up(self, found: Survey, compared: Compared) -> Verified:
        """Return the result of the whole comparison."""
        differences = self._without_newer(found, with_moved(compared.differences))
        left = [*found.not_compared, *compared.not_compared]
        nothing = not compared.records and not differences and not any(one.asked for one in left)
        return Verified(
            flow=self._flow.flow,
            lane=self._flow.lane,
            partitions=found.partitions,
            records=compared.records,
            bytes=compared.bytes,
            seconds=time.monotonic() - self._began,
            differences=tuple(sorted(differences, key=lambda one: (one.source, one.source_range, one.target_range))),
            more=compared.more,
            not_compared=tuple(sorted(left, key=lambda one: (one.source, one.start))),
            notes=(*found.notes, *([NOTHING] if nothing else []), *self._doubts(differences)),
            identical=compared.identical if any(one.identical for one in found.spans) else None,
            begins=found.begins,
            sample=self._wanted.sample,
            seed=None if self._wanted.sample is None else self._wanted.seed,
            reader=OWN_READER if self._independent is None else self._independent.name,
        )

    def _doubts(self, differences: Sequence[Difference]) -> list[str]:
        """Say why a record that only the target has may be a copy even so, if librdkafka cannot show its source."""
        hidden = self._independent is not None and self._limits.isolation == READ_COMMITTED
        return [ABORTED] if hidden and any(one.kind is DifferenceKind.EXTRA for one in differences) else []

    def _without_newer(self, found: Survey, differences: Sequence[Difference]) -> list[Difference]:
        """Leave out records that a run has copied since the ledger was read: they are after all that it showed."""
        until = {one.target: one.covered_until for one in [*found.spans, *found.transformed]}
        until |= {one.target: one.covered_until for one in found.dealt}
        behind = [
            one
            for one in differences
            if one.kind is DifferenceKind.EXTRA and one.target_range[0] >= until.get(one.target, 0)
        ]  # fmt: skip
        if not behind:
            return list(differences)
        newer = self._connections.run(lambda: self._newer({one.target for one in behind}, until))
        return [one for one in differences if one not in behind or one.target not in newer]

    async def _newer(self, targets: set[TopicPartition], until: dict[TopicPartition, int]) -> set[TopicPartition]:
        """Return the target partitions that have new receipts, decided or not."""
        view = await self._connections.view()
        lane = self._flow.lane
        every = [*last_receipts(view, lane).values(), *open_receipts(view, lane)]
        every += [*last_units(view, lane).values(), *open_units(view, lane)]
        known = ((one.target, one.target_next) for one in every if one.target in targets)
        return {target for target, end in known if end is not None and end > until[target]}
