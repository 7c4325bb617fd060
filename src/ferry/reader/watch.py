"""Polls of a flow over connections that stay open: what an open page needs.

The ledger is read from its beginning once, then only onward (ADR 11), so a poll costs what came since. A side that does
not answer is named, and the other one is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.config.settings import Settings
from ferry.errors import BadInput, EmptyFilter, FerryError, Refused, Retryable, Unreachable
from ferry.features.groups.acts.translate import translate_over
from ferry.features.groups.rules.translation import Translation
from ferry.features.lanes.acts.listing import known_lane
from ferry.features.lanes.rules.listing import Lane, lane_names
from ferry.lane.connections import TargetFirst
from ferry.lane.log_ends import log_ends
from ferry.lane.map_entries import read_blocks
from ferry.lane.unit_receipts import dealing_of
from ferry.ledger.block_index import Links
from ferry.ledger.history import Forgotten, Holder, PastRun, holders, named_run, past_run
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.map_rows import chains_of, newer_rows
from ferry.ledger.progress import Committed, LogEnd, Paced, RunProgress, committed, progress_of, unfinished
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.repartitioned_at import Dealing
from ferry.ledger.runs import outcome
from ferry.model import OpenedRun, Plan, Receipt, TopicPartition
from ferry.plan.lag import lag_over
from ferry.plan.rules.lag import PartitionLag
from ferry.reader.cluster_look import ClusterLook
from ferry.reader.documents import ClustersStory
from ferry.reader.limits import SEARCHED
from ferry.reader.snapshot import ReadRun
from ferry.reader.spells import silent_by

_MOST_LANES = 50
Read = TypeVar("Read", PastRun, PastRun | Forgotten)
Piece = tuple[ReceiptChain, int | None, int]
"""A block of a chain by its index, None for rows outside blocks; and how many receipts it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPoll:
    """One poll of a flow. A part is None when it could not be read; why is in `troubles`, else in `hindrances`."""

    view: LedgerView | None
    """The ledger; an empty view if the flow never ran."""
    lags: tuple[PartitionLag, ...] | None
    troubles: dict[str, str]
    """Clusters that do not answer, by alias, and why."""
    hindrances: list[str] = field(default_factory=list)
    """What else failed, with the remedy: a secret, a login, an ACL, a filter that matches nothing."""
    doubts: list[FerryError] = field(default_factory=list)
    """Errors that other logins may end."""

    @classmethod
    def hindered(cls, view: LedgerView | None, errors: Mapping[str, FerryError]) -> Self:
        """Return a poll that met errors, by the alias of the cluster; an empty alias if no cluster is the cause."""
        poll = cls(view=view, lags=None, troubles={})
        for alias, error in errors.items():
            poll.blame(alias, error)
        return poll

    def blame(self, alias: str, error: FerryError) -> None:
        """Add an error: an outage of that cluster if it is Unreachable, else a hindrance."""
        if alias and isinstance(error, Unreachable):
            self.troubles.setdefault(alias, str(error))
        else:
            self.hindrances.append(str(error))
            if may_be_login(error):
                self.doubts.append(error)


def may_be_login(error: FerryError) -> bool:
    """Return whether other logins may end an error: a refusal, or a secret that is missing or wrong."""
    return isinstance(error, (Refused, BadInput)) and not isinstance(error, EmptyFilter)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenRun:
    """What is kept of an open run, so that its progress can be measured without reading it again."""

    plan: Plan
    done: Mapping[TopicPartition, Committed]
    upto: int
    """The end of the ledger that shows what is done."""
    paced: Paced

    async def ends(self, connections: TargetFirst) -> dict[TopicPartition, LogEnd]:
        return await log_ends(connections.target, unfinished(self.plan, self.done))

    def progress(self, ends: Mapping[TopicPartition, LogEnd]) -> RunProgress:
        return self.paced.add(time.monotonic(), progress_of(self.plan, self.done, ends))


class FlowWatch:
    """The connections of one flow as long as it is polled. Not thread-safe. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, patience_s: float, settings: Callable[[], Settings] | None = None) -> None:
        """`patience_s`: how long a cluster that does not answer is tried at each poll.

        `settings` returns the whole file with its logins; None: it has this flow alone.
        """
        self.flow = flow
        self.settings = settings
        self.patience_s = patience_s
        self._connections: TargetFirst | None = None
        self._down: dict[str, FerryError] = {}
        """The clusters that did not answer when the connections were opened."""
        self._open_runs: dict[OpenedRun, _OpenRun] = {}
        self._partitions_ms = 0
        """When the last poll asked for the metadata of the flow's topics on both sides; 0: it did not."""
        self._clusters = ClusterLook(flow)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and drop what was read of the ledger."""
        if self._connections is not None:
            self._connections.close()
            self._connections = None

    def look(self) -> FlowPoll:
        """Return the ledger and the lag as they are now; never raises for a cluster that is down or refuses."""
        source, target = self.flow.flow.source, self.flow.flow.target
        self._partitions_ms = 0
        try:
            connections = self._open()
        except FerryError as error:
            return FlowPoll.hindered(None, {**self._down, target: error})
        try:
            view = connections.run(connections.view_if_any)
        except FerryError as error:
            return FlowPoll.hindered(None, _who_is_silent(connections, error))
        try:
            _reach_source(connections)
        except FerryError as error:
            return FlowPoll.hindered(view, {source: error})
        asked_ms = wall_ms()
        try:
            lags = connections.run(partial(lag_over, self.flow, connections))
        except FerryError as error:
            return FlowPoll.hindered(view, _who_is_silent(connections, error))
        self._partitions_ms = asked_ms
        return FlowPoll(view=view, lags=tuple(lags), troubles={})

    def clusters(self) -> ClustersStory:
        """Return what the brokers of both clusters show; of one that does not answer, what they showed last, and why.

        Raises BadInput when a secret cannot be resolved.
        """
        try:
            connections = self._open()
        except FerryError as error:
            return self._clusters.apart({**self._down, self.flow.flow.target: error}, patience_s=self.patience_s)
        return self._clusters.over(connections, dict(connections.down), self._partitions_ms)

    def past(self, opened: OpenedRun) -> PastRun | Forgotten:
        """Return a run of a view with its plan and its receipts; Forgotten if it was pruned since.

        Raises BadInput when there is no ledger, because the flow never ran.
        """
        connections = self._open()

        async def work() -> PastRun | Forgotten:
            return await self._past(connections, opened)

        return connections.run(work)

    def progress(self, opened: OpenedRun) -> RunProgress | None:
        """Measure again how far an open run has come; it is read again only if the ledger has moved.

        None if it is not open any more, or was not read yet.
        """
        connections, known = self._open(), self._open_runs.get(opened)
        if known is None:
            return None

        async def work() -> RunProgress | None:
            ends = await known.ends(connections)
            if (await connections.cache.view()).end == known.upto:
                return known.progress(ends)
            found = await self._past(connections, opened)
            return found.progress if isinstance(found, PastRun) else None

        return connections.run(work)

    def run(self, name: str, *, lane: str = "") -> PastRun | Forgotten | None:
        """Return one run, however old; Forgotten if the ledger has only receipts of it.

        An empty `lane` is the flow's own. None when the ledger has no record of it, and no receipt in the SEARCHED
        records before its newest summary or after it.
        """
        connections = self._open()
        lane = lane or self.flow.lane

        async def work() -> PastRun | Forgotten | None:
            ends = await self._ends(connections, lane, name)
            view = await connections.cache.view_named(lane, name, most=SEARCHED)
            found = named_run(view, lane, name)
            if found is None:
                return None
            return await self._measured(connections, self._with_silent(found, view), view.end, ends)

        return connections.run(work)

    def receipts(self, place: TopicPartition, skip: int, most: int, *, lane: str = "") -> tuple[list[Receipt], int]:
        """Return receipts of a source partition, newest first, without the `skip` newest; and how many there are.

        Only the blocks that hold them are read, so the total does not matter. An empty `lane` is the flow's own.
        """
        connections = self._open()
        flow = self._in(lane)
        copy = TopicPartition(topic=flow.copy_of(place.topic), partition=place.partition)

        def match(of: ReceiptChain) -> bool:
            return of.lane == flow.lane and of.source == place

        async def work() -> tuple[list[Receipt], int]:
            view = await connections.cache.view()
            chains = chains_of(view, match)
            newer = newer_rows(view, match, {copy, *(of.target for of in chains)})
            pieces = _pieces(chains, newer)
            chosen, before = pieces_of_page(pieces, skip, most)
            read = await read_blocks(connections.ledger, chains, [(of, at) for of, at, _ in chosen if at is not None])
            rows = [row for of, at, _ in chosen for row in reversed(newer[of] if at is None else read[of, at])]
            ats = [row.at for row in rows[skip - before : skip - before + most]]
            records = await connections.ledger.read_at(ats) if ats else {}
            there = [records[at] for at in ats if at in records]
            found = [read_as(one, parse_receipt) for one in there if one.value is not None]
            return found, sum(count for *_, count in pieces)

        return connections.run(work)

    def receipt(self, place: TopicPartition, start: int, run: str, *, lane: str = "") -> Receipt | None:
        """Return the receipt of a source partition that begins at an offset, of a run; None if the ledger has none.

        An empty `run` means the newest one: after a gap was filled there may be two. An empty `lane` is the flow's own.
        """
        connections = self._open()
        lane = lane or self.flow.lane

        def match(of: ReceiptChain) -> bool:
            return of.lane == lane and of.source == place

        async def work() -> Receipt | None:
            near = await connections.cache.receipts_with(await connections.cache.view(), match, start)
            found = [one for one in near if one.start == start and run in ("", one.run)]
            return found[-1] if found else None

        return connections.run(work)

    def where(
        self, place: TopicPartition, offset: int, *, backward: bool, lane: str = ""
    ) -> tuple[Translation, list[Holder]]:
        """Return the target offset of a source offset (`backward`: the reverse), and the receipts that show it.

        An empty `lane` is the flow's own. Raises Unreachable without the target. Raises Refused if one side no longer
        has what was copied. Raises BadInput if the lane has copied nothing of the partition.
        """
        connections = self._open()
        flow = self._in(lane)

        async def work() -> tuple[Translation, list[Holder]]:
            found = await translate_over(connections, flow, place, offset, backward)
            at = found.outcome.offset if backward else offset

            def match(of: ReceiptChain) -> bool:
                return of.lane == flow.lane and of.source == found.source

            view = await connections.cache.view()
            near = await connections.cache.receipts_with(view, match, at)
            return found, holders(near, at, gaps(view, flow.lane))

        return connections.run(work)

    def dealt(self, topic: str, *, lane: str = "") -> Dealing | None:
        """Return where records of a repartitioned source topic went; None if it is not one.

        An empty `lane` is the flow's own.
        """
        connections = self._open()

        async def work() -> Dealing | None:
            view = await connections.cache.view()
            return await dealing_of(connections.ledger, view, lane or self.flow.lane, topic)

        return connections.run(work)

    def lanes(self) -> list[Lane]:
        """Return the lanes other than the flow's own, with what they have copied."""
        connections = self._open()

        async def work() -> list[Lane]:
            names = [name for name in lane_names(await connections.cache.view()) if name != self.flow.lane]
            return [await known_lane(connections.cache, name) for name in names[:_MOST_LANES]]

        return connections.run(work)

    def lane(self, name: str) -> tuple[Lane, list[OpenedRun]] | None:
        """Return a lane with what it has copied, and its runs in the ledger, newest first; None if it is not there."""
        connections = self._open()

        async def work() -> tuple[Lane, list[OpenedRun]] | None:
            view = await connections.cache.view()
            if name not in lane_names(view):
                return None
            return await known_lane(connections.cache, name), view.remembered(name)[::-1]

        return connections.run(work)

    async def _past(self, connections: TargetFirst, opened: OpenedRun) -> PastRun | Forgotten:
        ends = await self._ends(connections, opened.record.lane, opened.record.run)
        view = await connections.cache.view_of(opened)
        return await self._measured(connections, self._with_silent(past_run(view, opened), view), view.end, ends)

    def _with_silent(self, past: PastRun | Forgotten, view: LedgerView) -> PastRun | Forgotten:
        """Return a run with the clusters that did not answer its copy: its report lacks what is copied by now."""
        if not isinstance(past, PastRun):
            return past
        ended = outcome(view, past.opened.record.lane, past.opened.record.run)
        flow = self.flow.flow
        silent = silent_by(ended.refusals if ended else (), (flow.source, flow.target))
        return ReadRun(**{one.name: getattr(past, one.name) for one in fields(past)}, silent=silent)

    async def _ends(self, connections: TargetFirst, lane: str, run: str) -> dict[TopicPartition, LogEnd] | None:
        """Return the ends of the logs of a run that was open; ask for them before the ledger is read (`progress_of`).

        None if no plan of it is known here.
        """
        runs = self._open_runs.items()
        known = next((one for of, one in runs if (of.record.lane, of.record.run) == (lane, run)), None)
        return None if known is None else await known.ends(connections)

    async def _measured(
        self, connections: TargetFirst, found: Read, upto: int, ends: Mapping[TopicPartition, LogEnd] | None
    ) -> Read:
        """Return a run, with its progress if it is open; `upto` is the end of the ledger in which it was read."""
        if not isinstance(found, PastRun):
            return found
        before = self._open_runs.pop(found.opened, None)
        report = found.open_report
        if report is None:
            return found
        plan, done = report.plan, committed(report.receipts)
        known = _OpenRun(plan=plan, done=done, upto=upto, paced=Paced() if before is None else before.paced)
        self._open_runs[found.opened] = known
        ends = await known.ends(connections) if ends is None else ends
        return replace(found, progress=known.progress(ends))

    def _in(self, lane: str) -> FlowConfig:
        return in_lane(self.flow, lane) if lane else self.flow

    def _open(self) -> TargetFirst:
        if self._connections is None:
            self._down = {}
            connections = TargetFirst.of(self.flow, patience_s=self.patience_s)
            self._down = connections.down
            connections.__enter__()  # closes itself when it fails
            self._connections = connections
        return self._connections


def _pieces(chains: Mapping[ReceiptChain, Links], newer: Mapping[ReceiptChain, Sequence[MapEntry]]) -> list[Piece]:
    """Return the pieces that hold the receipts of a partition, newest first: rows outside blocks, then the blocks."""
    pieces: list[Piece] = []
    for of in sorted({**chains, **newer}, key=lambda of: of.since, reverse=True):
        pieces.append((of, None, len(newer.get(of, ()))))
        blocks = chains[of].blocks if of in chains else ()
        pieces += [(of, at, blocks[at].rows) for at in reversed(range(len(blocks)))]
    return [piece for piece in pieces if piece[2]]


def pieces_of_page(pieces: Sequence[Piece], skip: int, most: int) -> tuple[list[Piece], int]:
    """Return the pieces that hold the receipts after the first `skip`, and how many receipts come before these."""
    chosen, before, at = [], 0, 0
    for piece in pieces:
        if at + piece[2] <= skip:
            before = at + piece[2]
        elif at < skip + most:
            chosen.append(piece)
        at += piece[2]
    return chosen, before


def _who_is_silent(connections: TargetFirst, error: FerryError) -> dict[str, FerryError]:
    """Return the cause of a request's error: the clusters that do not answer now, else an empty alias."""
    if not isinstance(error, (Unreachable, Retryable)):
        return {"": error}

    async def work() -> dict[str, FerryError]:
        found = dict(connections.down)
        for cluster, answer in connections.both(lambda cluster: cluster.refresh(())):
            try:
                await answer
            except FerryError as silent:
                found[cluster.alias] = silent
        return found

    return connections.run(work) or {"": error}


def _reach_source(connections: TargetFirst) -> None:
    """Try a source again that did not answer when the connections were opened."""
    if not connections.has_source:
        connections.run(connections.source.open)
        del connections.down[connections.source.alias]
