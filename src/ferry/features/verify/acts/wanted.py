"""What is to be verified, by options or a request."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from ferry.clock import wall_ms
from ferry.config.flow.start import StartTime, parse_start
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.model import TopicPartition
from ferry.words import to_the_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to verify.

    Offsets are the source's, and need a topic and a partition; times (ms) are those of its records.
    """

    topics: Collection[str] | None = None
    partition: int | None = None
    start: int | None = None
    end: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    run: str | None = None
    sample: int | None = None
    seed: int = 0
    compacted: bool = False
    """Whether every topic is compared as a compacted one, whatever its cleanup.policy is now."""

    without_ledger: bool = False
    """Whether the logs are compared by their contents, because another mirror has copied."""

    @property
    def is_narrow(self) -> bool:
        """Report whether it is a part of the flow only."""
        given = self.topics, self.partition, self.since_ms, self.until_ms, self.run, self.sample
        return self.without_ledger or any(one is not None for one in given)

    def takes(self, source: TopicPartition) -> bool:
        """Report whether a source partition is of what is named."""
        return (self.topics is None or source.topic in self.topics) and self.partition in (None, source.partition)

    def check(self) -> None:
        """Raise BadInput for options that contradict each other."""
        if self.without_ledger:
            self._check_without_ledger()
        topics = list(self.topics or ())
        if self.partition is not None and len(topics) != 1:
            raise BadInput(f"--partition {self.partition} needs the one topic that it counts in: add --topic")
        if (self.start is not None or self.end is not None) and self.partition is None:
            raise BadInput(
                "offsets in --from and --to are the source's, of one partition: add --topic and --partition, or write"
                " times"
            )
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise BadInput(f"--from {self.start} is not before --to {self.end}: the end is not part of the range")
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            since, until = to_the_ms(self.since_ms), to_the_ms(self.until_ms)
            raise BadInput(f"--from {since} is not before --to {until}: exchange them")
        now_ms = wall_ms()
        for option, ms in (("--from", self.since_ms), ("--to", self.until_ms)):
            if ms is not None and ms > now_ms:
                raise BadInput(f"{option} is {(ms - now_ms) / 1000:.0f} s in the future: omit it, or correct it")

    def _check_without_ledger(self) -> None:
        for option, given in (("--run", self.run), ("--one-in", self.sample)):
            if given is not None:
                raise BadInput(f"{option} {given} needs the ledger's offset map: omit it, or omit --without-ledger")
        if self.start is not None or self.end is not None:
            raise BadInput("without a ledger no offset of one side is one of the other: write times in --from and --to")


def bound(option: str, text: str | None) -> tuple[int | None, int | None]:
    """Parse the value of --from or --to: an offset, or a time in ms; BadInput for anything else."""
    value = (text or "").strip()
    if not value:
        return None, None
    if value.isascii() and value.isdigit():
        return int(value), None
    with suppress(BadValue):
        found = parse_start(value)
        if isinstance(found, StartTime):
            return None, found.timestamp_ms
    raise BadInput(
        f"{option} {value!r} is not understood: write a source offset, or a time with its zone, such as "
        "2026-01-31T06:00:00Z"
    )
