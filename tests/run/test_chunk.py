"""Where the broker put batches becomes segments; another writer's records between them are noticed, or allowed."""

from dataclasses import replace

import pytest

from ferry.model import Origin, Segment
from ferry.run.chunk import PartProgress
from tests.decide.values import PLAN, piece


def part(*, merged: bool) -> PartProgress:
    return PartProgress(
        plan=PLAN, origin=Origin(), piece=replace(piece(), merged=merged), start=0, end=30, target_next=100
    )


@pytest.mark.parametrize("merged", [False, True])
def test_only_a_merged_topic_may_hold_other_flows_records_between_ours(merged: bool) -> None:
    progress = part(merged=merged)
    assert progress.written([(0, 10)], 100)
    assert progress.written([(10, 10)], 110), "what follows directly is the same segment"
    assert progress.written([(20, 10)], 125) is merged
    assert progress.receipt().segments == (
        Segment(source_start=0, target_start=100, count=20),
        Segment(source_start=20, target_start=125, count=10),
    )
    assert progress.receipt().target_next == 135
