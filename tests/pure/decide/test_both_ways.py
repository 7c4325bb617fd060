"""Offsets of a topic that keeps its name on two clusters whose clients were switched from one to the other in turn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import Refused
from ferry.features.groups.acts.offset_maps import PartitionMap
from ferry.features.groups.rules.both_ways import BothWays, ForwardAlone, chosen
from ferry.features.groups.rules.offset_map import Ahead, Exact, InGap, OffsetMap, Translated
from ferry.model import Gap, Receipt, RefusalKind, Segment, TopicPartition
from ferry.model.segment import joined
from tests.pure.decide.values import RECEIPT

HOLE = None
"""What a log has where a reader is given nothing: a marker, or an aborted record."""

PLACE = TopicPartition(topic="orders", partition=0)


@dataclass(slots=True)
class Log:
    """A partition on one cluster: the record at each offset, and the receipts of the flow that leads here."""

    records: list[int | None] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)

    def places(self) -> dict[int, int]:
        """By record the offset where it lies."""
        return {record: offset for offset, record in enumerate(self.records) if record is not HOLE}


def copy(source: Log, begin: int, end: int, target: Log) -> None:
    """One committed chunk."""
    found = []
    for offset in range(begin, end):
        record = source.records[offset]
        if record is not HOLE:
            found.append(Segment(source_start=offset, target_start=len(target.records), count=1))
            target.records.append(record)
    made = replace(RECEIPT, start=begin, end=end, target_next=len(target.records), segments=joined(found))
    target.receipts.append(made)
    target.records.append(HOLE)


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, Log]:
    """Both logs. Clients worked here first, then there, and so on; of their last records a part is copied at most."""
    here, there = Log(), Log()
    number = 0
    phases = draw(st.lists(st.lists(st.booleans(), min_size=1, max_size=8), min_size=1, max_size=5))
    for phase, holes in enumerate(phases):
        source, target = (here, there) if phase % 2 == 0 else (there, here)
        begin = len(source.records)
        for hole in holes:
            source.records.append(HOLE if hole else number)
            number += 1
        end = len(source.records)
        cuts = sorted({end, *draw(st.lists(st.integers(begin + 1, end), max_size=3))})
        if phase == len(phases) - 1:
            cuts = cuts[: draw(st.integers(0, len(cuts)))]
        for cut in cuts:
            copy(source, begin, cut, target)
            begin = cut
    return here, there


@given(logs())
def test_a_group_reads_on_where_it_was_in_each_phase(pair: tuple[Log, Log]) -> None:
    """Of what lies on the other cluster now it is given nothing again, and nothing that it has not read is passed."""
    here, there = pair
    forward = OffsetMap.forward(there.receipts, stands_at=len(there.records)) if there.receipts else None
    backward = OffsetMap.backward(here.receipts, stands_at=len(here.records)) if here.receipts else None
    read_here, on_there = here.places(), there.places()
    for offset in range(len(here.records) + 1):
        found = chosen(
            None if forward is None else forward.translate(offset),
            None if backward is None else backward.translate(offset),
        )
        if found is None:
            continue
        goes_on = found[1].offset
        read = {record for record, at in read_here.items() if at < offset}
        again = sorted(record for record in read & on_there.keys() if on_there[record] >= goes_on)
        passed = sorted(record for record in on_there.keys() - read if on_there[record] < goes_on)
        assert (again, passed) == ([], []), (offset, found)


@given(logs())
def test_the_map_of_one_flow_alone_leads_past_no_record_that_a_group_has_not_read(pair: tuple[Log, Log]) -> None:
    here, there = pair
    receipts = there.receipts
    forward = None
    if receipts:
        holes = [(one.end, other.start) for one, other in pairwise(receipts) if one.end < other.start]
        forward = replace(
            _map(OffsetMap.forward(receipts, stands_at=len(there.records))),
            gaps=tuple(
                Gap(source=PLACE, start=start, end=end, why=RefusalKind.LOOP, run="r", at_ms=1) for start, end in holes
            ),
        )
    alone = ForwardAlone(forward=forward, place=PLACE, why="hidden")
    read_here, on_there = here.places(), there.places()
    for offset in range(len(here.records) + 1):
        if (why := alone.trouble_at(offset)) is not None:
            assert why == "hidden"
            with pytest.raises(Refused):
                alone.translate(offset)
            continue
        goes_on = alone.translate(offset).offset
        read = {record for record, at in read_here.items() if at < offset}
        assert not [record for record in on_there.keys() - read if on_there[record] < goes_on], offset


def test_a_group_that_has_read_all_of_both_flows_goes_on_after_the_later_copy() -> None:
    here, there = Log([1, 2]), Log()
    copy(here, 0, 2, there)
    there.records += [3, 4]
    copy(there, 3, 5, here)
    here.records += [5, 6]  # not copied yet
    both = BothWays(
        forward=_map(OffsetMap.forward(there.receipts, stands_at=len(there.records))),
        backward=_map(OffsetMap.backward(here.receipts, stands_at=len(here.records)), backward=True),
    )
    assert both.translate(6).offset == len(there.records)


READ_ALL = Exact(offset=10, read_all=True)


@pytest.mark.parametrize(
    ("forward", "backward", "found"),
    [
        (READ_ALL, Exact(offset=18, read_all=True), ("back", 18)),  # a switch passed over what came back, to its end
        (Exact(offset=18, read_all=True), READ_ALL, ("via", 18)),
        (READ_ALL, Exact(offset=7), ("back", 7)),  # the next record came from there
        (Exact(offset=7), Exact(offset=18, read_all=True), ("via", 7)),
        (READ_ALL, Ahead(offset=18), ("back", 18)),
        (READ_ALL, InGap(offset=7), ("via", 10)),
        (READ_ALL, None, ("via", 10)),
    ],
)
def test_a_flow_of_which_all_is_read_leads_to_nothing_before_the_other_one(
    forward: Translated, backward: Translated | None, found: tuple[str, int]
) -> None:
    by, outcome = chosen(forward, backward) or ("", Ahead(offset=-1))
    assert (by, outcome.offset) == found


def _map(offsets: OffsetMap, *, backward: bool = False) -> PartitionMap:
    return PartitionMap(source=PLACE, target=PLACE, offsets=offsets, backward=backward)
