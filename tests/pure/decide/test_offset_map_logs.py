"""The offset map over logs that live: several runs, compaction and retention after copying, logs that were cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.groups.rules.offset_map import Ahead, Before, Exact, OffsetMap, Translated
from ferry.model import Gap, Receipt, RefusalKind, Resolution, Segment
from ferry.model.segment import joined
from tests.pure.decide.values import RECEIPT

HOLE = None
"""What a log has where a read_committed reader is given nothing: markers, aborted records, what a cleaner took."""


class Record(NamedTuple):
    """A record, told from all others by its number; `at` is its offset in the source's log of then."""

    number: int
    key: str
    at: int


@dataclass(slots=True, kw_only=True)
class Logs:
    """Both logs, as the record that each offset holds, and what a lane's ledger says of them."""

    source: list[Record | None] = field(default_factory=list)
    target: list[Record | None] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    stands: int = 0
    """Where the lane goes on."""
    generation: int = 1
    copies: dict[Record, int] = field(default_factory=dict)
    """Where each record that was copied came to lie."""
    written: dict[Record, int] = field(default_factory=dict)
    """In which run each was."""
    cleaned: set[Record] = field(default_factory=set)
    """Copies that the target's cleaner took, for it had a newer one of the key."""
    numbers: int = 0
    noted: dict[bool, dict[int, Translated]] = field(default_factory=lambda: {True: {}, False: {}})
    """What the map said of each offset since the lane went back last: the way there (True), and back."""

    def append(self, keys: Sequence[str]) -> None:
        """Records at the source; an empty key is a marker, or a record of a transaction that was aborted."""
        for key in keys:
            self.numbers += 1
            self.source.append(Record(self.numbers, key, len(self.source)) if key else HOLE)

    def copy(self, count: int) -> None:
        """One committed chunk over `count` source offsets."""
        start, end = self.stands, min(self.stands + count, len(self.source))
        if start >= end:
            return
        found = []
        for offset, record in enumerate(self.source[start:end], start):
            if record is not HOLE:
                found.append(Segment(source_start=offset, target_start=len(self.target), count=1))
                self.copies[record], self.written[record] = len(self.target), self.generation
                self.target.append(record)
        self.receipts.append(
            replace(
                RECEIPT,
                generation=self.generation,
                start=start,
                end=end,
                target_next=len(self.target),
                segments=joined(found),
            )
        )
        self.target.append(HOLE)  # the commit marker
        self.stands = end

    def look(self, knows_end: bool) -> None:
        """Groups are translated; they move only later, when more has been copied."""
        if self.receipts:
            stands_at = len(self.target) if knows_end else None
            for there, make, log in ((True, OffsetMap.forward, self.source), (False, OffsetMap.backward, self.target)):
                made = make(self.receipts, self.gaps, stands_at)
                self.noted[there].update((offset, made.translate(offset)) for offset in range(len(log) + 2))

    def fail(self, count: int) -> None:
        """A task that is killed: its records stay in the target's log, and nobody sees them."""
        self.target += [HOLE] * (count + 1)

    def next_run(self, _: int) -> None:
        """What follows is another run's."""
        self.generation += 1

    def skip(self, count: int) -> None:
        """Somebody passes some offsets by hand."""
        end = min(self.stands + count, len(self.source))
        if self.stands < end:
            self._go_to(end, Resolution.SKIP, void_from=None)

    def expire(self, count: int) -> None:
        """Retention takes the source's first offsets; a lane that stood in them is let go on behind them."""
        start = min(count, len(self.source))
        self.source[:start] = [HOLE] * start
        if self.stands < start:
            self._go_to(start, Resolution.SKIP, void_from=None)

    def compact_source(self, _: int) -> None:
        """The source's cleaner takes each record of which the log has a newer one."""
        self.source = _compacted(self.source)

    def compact_target(self, _: int) -> None:
        """The target's takes those of its own log, unless that holds records which the source lost."""
        if not any(gap.void_from is not None for gap in self.gaps):
            left = _compacted(self.target)
            self.cleaned |= {old for old, new in zip(self.target, left, strict=True) if old is not None and new is None}
            self.target = left

    def cut_off(self, at: int) -> None:
        """An unclean election takes the end of the source's log; the next run goes back there, if it must."""
        del self.source[at:]
        if at < self.stands:
            self._go_to(at, Resolution.RESTART, void_from=at)

    def create_again(self, _: int) -> None:
        """The source topic is deleted and created again; the next run begins at 0."""
        self.source.clear()
        self._go_to(0, Resolution.RESTART, void_from=0)

    def _go_to(self, to: int, how: Resolution, *, void_from: int | None) -> None:
        self.generation += 1
        if void_from is not None:
            self.noted = {True: {}, False: {}}
        self.gaps.append(
            Gap(
                source=RECEIPT.source,
                start=self.stands,
                end=to,
                why=RefusalKind.SOURCE_TRUNCATED,
                run=f"run-{self.generation}",
                at_ms=1,
                how=how,
                generation=self.generation,
                void_from=void_from,
            )
        )
        self.stands = to

    def holds(self, record: Record) -> bool:
        """Whether the lane's word on a record that was copied still holds: the log of now had it."""
        return record in self.copies and not any(
            gap.void_from is not None and gap.void_from <= record.at and gap.generation > self.written[record]
            for gap in self.gaps
        )


def _compacted(log: Sequence[Record | None]) -> list[Record | None]:
    newest = {record.key: record for record in log if record is not HOLE}
    return [record if record is not HOLE and newest[record.key] is record else HOLE for record in log]


def calls(name: str, argument: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[str, object]]:
    """A step: one of Logs' methods with its argument."""
    return st.tuples(st.just(name), argument)


KEYS = st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=1, max_size=6)
GROWS = (
    calls("append", st.lists(st.sampled_from("abc"), min_size=1, max_size=12)),
    calls("append", KEYS),
    calls("copy", st.integers(1, 15)),
    calls("fail", st.integers(0, 4)),
    calls("next_run", st.just(0)),
    calls("look", st.booleans()),
)
CLEANS = (
    calls("compact_source", st.just(0)),
    calls("compact_target", st.just(0)),
    calls("expire", st.integers(1, 20)),
)
ACCIDENTS = (
    calls("skip", st.integers(1, 4)),
    calls("cut_off", st.integers(0, 30)),
    calls("create_again", st.just(0)),
)


@st.composite
def lives(draw: st.DrawFn, *steps: st.SearchStrategy[tuple[str, object]]) -> Logs:
    """Logs after some steps, with something copied in them; before it the target may hold records of somebody else."""
    logs = Logs()
    logs.target = [Record(-number, "x", -1) for number in range(1, 1 + draw(st.integers(0, 2)))]
    for name, argument in draw(st.lists(st.one_of(*steps), min_size=4, max_size=25)):
        step: Callable[[object], None] = getattr(logs, name)
        step(argument)
    if not logs.receipts:
        logs.append("ab")
        logs.copy(len(logs.source))
    logs.look(draw(st.booleans()))
    # Who moved a moment ago reads what is copied next.
    logs.append(draw(KEYS))
    logs.copy(draw(st.integers(1, 15)))
    return logs


def records(log: Sequence[Record | None], offset: int) -> list[Record]:
    """What a reader who begins at `offset` is given."""
    return [record for record in log[offset:] if record is not HOLE]


@given(logs=lives(*GROWS))
def test_while_nothing_is_lost_a_reader_goes_on_with_the_same_records(logs: Logs) -> None:
    copied = logs.source[: logs.stands]
    for offset, found in logs.noted[True].items():
        wanted = records(copied, offset)
        there = records(logs.target, found.offset)
        if isinstance(found, Ahead):  # it was not copied when the group moved: read again maybe, never missed
            assert there[len(there) - len(wanted) :] == wanted
        else:
            assert there == wanted
    for offset, found in logs.noted[False].items():
        if not isinstance(found, Ahead | Before):
            assert records(copied, found.offset) == records(logs.target, offset)


@given(logs=lives(*GROWS, *CLEANS, *ACCIDENTS))
def test_whatever_befalls_the_logs_no_record_is_read_twice_and_none_is_missed_at_the_target(logs: Logs) -> None:
    now = set(records(logs.source, 0))
    for offset, outcome in logs.noted[True].items():
        found = records(logs.target, outcome.offset)
        wanted = [record for record in records(logs.source, offset) if record in logs.copies.keys() - logs.cleaned]
        valid = [record for record in found if record in now]
        if isinstance(outcome, Ahead):
            assert valid[len(valid) - len(wanted) :] == wanted
            continue
        assert valid == wanted
        # What else is read the source had then, behind this offset too, unless an accident took it.
        lost = [record for record in found if record not in now and logs.holds(record)]
        assert all(record.at >= offset for record in lost)
        assert logs.copies.keys() >= set(found), "records of somebody else"


@given(logs=lives(*GROWS, *CLEANS, *ACCIDENTS))
def test_whatever_befalls_the_logs_no_record_is_read_twice_and_none_is_missed_on_the_way_back(logs: Logs) -> None:
    now = set(records(logs.source, 0))
    for offset, outcome in logs.noted[False].items():
        again = [record for record in records(logs.source, outcome.offset) if record in logs.copies]
        wanted = [record for record in records(logs.target, offset) if record in now]
        valid = [record for record in again if record not in logs.cleaned]
        if isinstance(outcome, Ahead):
            assert valid[len(valid) - len(wanted) :] == wanted
            continue
        assert valid == wanted
        assert all(logs.copies[record] >= offset for record in again)


@given(logs=lives(*GROWS, *CLEANS, *ACCIDENTS))
def test_each_record_that_is_still_copied_has_one_place_there_and_back(logs: Logs) -> None:
    there, back = OffsetMap.forward(logs.receipts, logs.gaps), OffsetMap.backward(logs.receipts, logs.gaps)
    for offset, record in enumerate(logs.source):
        if record in logs.copies:
            assert there.translate(offset) == Exact(offset=logs.copies[record])
            assert back.translate(logs.copies[record]) == Exact(offset=offset)
