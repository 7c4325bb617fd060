"""Reads both sides of a comparison with librdkafka, which shares no code with Ferry's fetch and batch reader.

What belongs together comes from the ledger, and all decisions from `rules`, as with Ferry's own reader. What
librdkafka reads ahead and what waits for the other side is bounded. What it decompresses an answer to is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from ferry.config.client_options import FetchOptions
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.librdkafka import flow_librdkafka_options, reading_options
from ferry.config.keys.layers import SIDES
from ferry.errors import Unreachable
from ferry.features.verify.rules.by_records import FAILURES, RecordPair, loss_of
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.differences import SOURCE, TARGET, OneSided, See
from ferry.features.verify.rules.received import Received, content_of, shown_content
from ferry.kafka.librdkafka import BEGINNING, Arrived, Ended, Event, LogConsumer, librdkafka_name
from ferry.model import Range, RecordContent, TopicPartition

MOST = 1_000
"""Records that are taken from librdkafka at once."""

_WAIT_SECONDS = 0.1
_STALL_SECONDS = 5.0
"""If a log has ended before its range, so many seconds may pass until more comes: a new leader's end may be late."""

Places = dict[TopicPartition, RecordPair]


class IndependentReader:
    """Reads over connections of librdkafka. Use as a context manager."""

    def __init__(
        self, flow: FlowConfig, *, memory_bytes: int, fetch: FetchOptions, committed: bool, patience_s: float
    ) -> None:
        """Translate the flow's properties. Raises Refused for what librdkafka does not have, with file and line."""
        reading = reading_options(fetch, memory_bytes // 4)
        self._held_most = memory_bytes // 4
        self._patience_s = patience_s
        self._options = [flow_librdkafka_options(flow, side) | reading for side in SIDES]
        self._ways = [(flow.flow.source, committed), (flow.flow.target, True)]
        self._consumers: list[LogConsumer] = []
        self.name = librdkafka_name()

    def __enter__(self) -> Self:
        """Make a consumer for each side."""
        for options, (alias, committed) in zip(self._options, self._ways, strict=True):
            self._consumers.append(LogConsumer(alias, options, committed=committed))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for consumer in self._consumers:
            consumer.close()
        self._consumers.clear()

    async def compare(
        self,
        group: Sequence[CompareRange],
        see: See,
        one_sided: Mapping[TopicPartition, OneSided],
        tell: Callable[[Sequence[RecordPair]], None],
    ) -> Sequence[RecordPair]:
        """Read both sides of ranges of different partitions, and compare them. Raises Unreachable."""
        pairs = [
            RecordPair(one, lambda content: see(shown_content(content)), one_sided.get(one.source)) for one in group
        ]
        both: tuple[Places, Places] = (
            {pair.span.source: pair for pair in pairs if not pair.is_over(SOURCE)},
            {pair.span.target: pair for pair in pairs if not pair.is_over(TARGET)},
        )
        for side, consumer in enumerate(self._consumers):
            consumer.assign({place: _range(pair.span, side)[0] for place, pair in both[side].items()})
        self._run(pairs, both, tell)
        for consumer in self._consumers:
            consumer.assign({})
        return pairs

    def _run(
        self, pairs: Sequence[RecordPair], both: tuple[Places, Places], tell: Callable[[Sequence[RecordPair]], None]
    ) -> None:
        ends: tuple[dict[TopicPartition, int], dict[TopicPartition, int]] = ({}, {})
        moved, narrow = time.monotonic(), False
        while left := [pair for pair in pairs if not pair.is_done]:
            held = [sum(pair.held_bytes(side) for pair in left) for side in (SOURCE, TARGET)]
            # Too much waits: only the first range is read on, until there is room. To change what is read costs a
            # second, so before that the side of which more waits is not read on.
            narrow = sum(held) > self._held_most or (narrow and sum(held) > self._held_most // 4)
            active = left[:1] if narrow else left
            wanted = [side for side in (SOURCE, TARGET) if any(pair.lacks(side) for pair in active)]
            if len(wanted) > 1 and sum(held) > self._held_most // 4:
                wanted = [SOURCE if held[SOURCE] <= held[TARGET] else TARGET]
            wanted = wanted or [SOURCE, TARGET]
            came = False
            for side in (SOURCE, TARGET):
                self._consumers[side].only([_place(pair.span, side) for pair in active if not pair.is_over(side)])
            for side in wanted:
                came |= self._take(side, 0 if came else _WAIT_SECONDS / len(wanted), both[side], ends[side])
            tell(pairs)
            now = time.monotonic()
            if came or (now - moved > _STALL_SECONDS and self._give_up_short(active, ends)):
                moved = now
            elif now - moved > self._patience_s + _STALL_SECONDS:
                raise self._silent(active[0], wanted)

    def _take(self, side: int, seconds: float, places: Places, ends: dict[TopicPartition, int]) -> bool:
        """Pass on what has come of a side; report whether anything has."""
        events = self._consumers[side].take(MOST, seconds)
        rows: dict[TopicPartition, list[RecordContent]] = {}
        for event in events:
            pair = places.get(event.place)
            if pair is None:
                continue
            if isinstance(event, Arrived):
                rows.setdefault(event.place, []).append(_content(event, side))
                ends.pop(event.place, None)
                continue
            pair.take(side, rows.pop(event.place, ()))
            self._stop(side, pair, event, ends)
        for place, row in rows.items():
            places[place].take(side, row)
        return bool(events)

    def _stop(self, side: int, pair: RecordPair, event: Event, ends: dict[TopicPartition, int]) -> None:
        if isinstance(event, Ended):
            if event.offset >= _range(pair.span, side)[1]:
                pair.end(side)
            else:
                ends[event.place] = event.offset
        elif not isinstance(event, Arrived):
            why = event.message if event.kind is None else FAILURES.get(event.kind, event.message)
            where = f"{event.place} of cluster {self._consumers[side].alias}"
            pair.give_up(f"{where}: {why}", loss_of(event.kind, side))

    def _give_up_short(
        self, active: Sequence[RecordPair], ends: tuple[dict[TopicPartition, int], dict[TopicPartition, int]]
    ) -> bool:
        """End the comparison of ranges whose logs end before they should; report whether there was one."""
        found = False
        for pair in active:
            for side in (SOURCE, TARGET):
                place = _place(pair.span, side)
                if pair.is_done or pair.is_over(side) or place not in ends[side]:
                    continue
                found = True
                where = f"{place} of cluster {self._consumers[side].alias}"
                pair.give_up(f"{where} can be read up to offset {ends[side][place]} only: verify again")
        return found

    def _silent(self, pair: RecordPair, wanted: Sequence[int]) -> Unreachable:
        side = wanted[0]
        consumer = self._consumers[side]
        said = f" ({consumer.trouble})" if consumer.trouble else ""
        return Unreachable(
            f"cluster {consumer.alias}: librdkafka gets no record of {_place(pair.span, side)}{said}: look at its "
            "brokers"
        )

    async def search(self, side: int, place: TopicPartition, take: Callable[[RecordContent], None]) -> str | None:
        """Pass on every record of a log; return a sentence when not all of it can be read."""
        return self._read(side, place, (BEGINNING, None), take)

    async def read(
        self, side: int, place: TopicPartition, part: Range, take: Callable[[RecordContent], None]
    ) -> str | None:
        """Pass on every record of a part of a log; return a sentence when not all of it can be read."""
        return self._read(side, place, part, take)

    def _read(
        self, side: int, place: TopicPartition, part: tuple[int, int | None], take: Callable[[RecordContent], None]
    ) -> str | None:
        """Pass on the records of a log from an offset to an end; None: up to where it ends now."""
        start, end = part
        consumer = self._consumers[side]
        consumer.assign({place: start})
        moved = time.monotonic()
        try:
            while True:
                events = consumer.take(MOST, _WAIT_SECONDS)
                for event in events:
                    if isinstance(event, Ended):
                        return None
                    if not isinstance(event, Arrived):
                        return f"{place} on cluster {consumer.alias}: {event.message}"
                    if end is not None and event.offset >= end:
                        return None
                    take(_content(event, side))
                if events:
                    moved = time.monotonic()
                elif time.monotonic() - moved > self._patience_s + _STALL_SECONDS:
                    return f"{place} on cluster {consumer.alias}: librdkafka gets no record: look at its brokers"
        finally:
            consumer.assign({})


def _place(span: CompareRange, side: int) -> TopicPartition:
    return span.source if side == SOURCE else span.target


def _range(span: CompareRange, side: int) -> Range:
    return span.source_range if side == SOURCE else span.target_range


def _content(event: Arrived, side: int) -> RecordContent:
    return content_of(Received(event.offset, event.kind, event.timestamp, event.key, event.value, event.headers), side)
