"""A modelled source partition on two brokers, whose log cleaners work on their own."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.identical.rules.values import Hole, Run

READ_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class Written:
    """A record that was written at an offset once."""

    value: str
    timestamp: int


class Source:
    """`truth`: what was written at each offset; None is a marker or an aborted record, which stays a hole."""

    def __init__(self, shape: str, now: int, old: int) -> None:
        """`shape`: one character an offset: `r` a record of now, `o` an old one, `m` a marker or aborted record."""
        self.truth: list[Written | None] = []
        self.grow(shape, now, old)
        self.gone: list[set[int]] = [set(), set()]
        self.starts = [0, 0]
        """Where the log begins on each broker."""
        self.leader = 0

    def grow(self, shape: str, now: int, old: int) -> None:
        """More is written."""
        for kind in shape:
            self.truth.append(None if kind == "m" else Written(f"{self.end}", now if kind == "r" else old))

    @property
    def end(self) -> int:
        """The end of the log."""
        return len(self.truth)

    def clean(self, offset: int, broker: int) -> None:
        """A cleaner of one broker removes an offset; the last record stays, as in Kafka."""
        if offset < self.end - 1:
            self.gone[broker].add(offset)

    def retain(self, start: int, broker: int) -> None:
        """The log start moves."""
        self.starts[broker] = max(self.starts[broker], min(start, self.end))
        for offset in range(min(start, self.end)):
            self.gone[broker].add(offset)

    def has(self, offset: int) -> Written | None:
        """The record that the leader serves at an offset."""
        return None if offset in self.gone[self.leader] else self.truth[offset]

    def may_be_passed(self, offset: int) -> bool:
        """Whether no record was there, or a cleaner removed it at least on one broker."""
        return self.truth[offset] is None or any(offset in gone for gone in self.gone)

    def read(self, start: int) -> tuple[Run | Hole | None, list[tuple[str | None, int]]]:
        """What there is from an offset on, and the records of it."""
        if start >= self.end:
            return None, []
        records: list[tuple[str | None, int]] = []
        at = start
        while at < self.end and len(records) < READ_AT_ONCE and (one := self.has(at)) is not None:
            records.append((one.value, one.timestamp))
            at += 1
        if records:
            return Run(count=len(records), oldest=min(timestamp for _, timestamp in records)), records
        seen = at not in self.gone[self.leader]
        while at < self.end and self.has(at) is None and (at not in self.gone[self.leader]) == seen:
            at += 1
        return Hole(end=at, seen=seen), []
