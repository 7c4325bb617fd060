"""What the old primary holds of what was copied from it: receipts and gaps of another topic do not count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from ferry.features.switch.rules.old_primary import (
    Lack,
    OldLogs,
    copied_partitions,
    lacks_of,
    reached_offsets,
)
from ferry.model import Gap, Receipt, RefusalKind, Resolution
from tests.pure.decide.many import receipt_of
from tests.pure.decide.values import place

ORDERS = place("orders")
LAST = replace(
    receipt_of(ORDERS, 0), end=10, generation=5, source_topic_id="then", source_cluster_id="c1", source_epoch=1
)
NOW = OldLogs(cluster_id="c1", ids={"orders": "then"}, ends={ORDERS: 12})
SKIPPED = Gap(source=ORDERS, start=10, end=12, why=RefusalKind.STUCK, run="r", at_ms=1, generation=6, topic_id="then")
WENT_BACK = replace(SKIPPED, end=4, why=RefusalKind.SOURCE_TRUNCATED, how=Resolution.RESTART, void_from=4, generation=7)


def looked(
    now: OldLogs, gaps: Collection[Gap] = (), lasts: Collection[Receipt] = (LAST,)
) -> tuple[list[Lack], dict[str, int]]:
    copied = copied_partitions(lasts, (), ()).values()
    lacks = lacks_of(copied, gaps, now)
    return lacks, {str(one): end for one, end in reached_offsets(copied, gaps, lacks, now.ids).items()}


def test_a_log_that_goes_on_lacks_nothing() -> None:
    assert looked(NOW) == ([], {"orders-0": 10})
    assert looked(replace(NOW, cuts={ORDERS: 10})) == ([], {"orders-0": 10})
    assert looked(NOW, [SKIPPED]) == ([], {"orders-0": 12})


@pytest.mark.parametrize(
    ("now", "why", "start", "records"),
    [
        (replace(NOW, cluster_id="c2"), RefusalKind.CLUSTER_CHANGED, 0, None),
        (replace(NOW, ids={}), RefusalKind.TOPIC_GONE, 0, None),
        (replace(NOW, ids={"orders": "now"}), RefusalKind.TOPIC_RECREATED, 0, None),
        (replace(NOW, ends={}), RefusalKind.TOPIC_RECREATED, 0, None),
        (replace(NOW, ends={ORDERS: 7}), RefusalKind.SOURCE_TRUNCATED, 7, None),
        (replace(NOW, cuts={ORDERS: 6}), RefusalKind.SOURCE_TRUNCATED, 6, 4),
        (replace(NOW, ends={ORDERS: 5}, cuts={ORDERS: 6}), RefusalKind.SOURCE_TRUNCATED, 5, 5),
    ],
)
@pytest.mark.parametrize("gaps", [(), (SKIPPED,)], ids=["", "skipped"])
def test_what_it_lacks_is_searched_from_where_the_log_is_another(
    now: OldLogs, why: RefusalKind, start: int, records: int | None, gaps: Collection[Gap]
) -> None:
    (lack,), reached = looked(now, gaps)
    assert (lack.source, lack.start, lack.end, lack.why, lack.records) == (ORDERS, start, 10, why, records)
    assert reached == {"orders-0": start}


def test_what_a_silent_leader_holds_is_not_known() -> None:
    assert looked(replace(NOW, ends={}, silent=frozenset({ORDERS})))[0] == []


def test_gaps_of_an_earlier_topic_do_not_count() -> None:
    now = replace(NOW, ids={"orders": "now"})
    assert looked(now, [SKIPPED], ())[1] == {}
    assert looked(now, [SKIPPED], [replace(LAST, source_topic_id="now")]) == ([], {"orders-0": 10})


def test_a_lane_that_has_gone_back_since_by_its_guard_lacks_nothing() -> None:
    cut = replace(NOW, cuts={ORDERS: 4})
    assert looked(cut, [WENT_BACK]) == ([], {"orders-0": 4})
    assert looked(cut, [replace(WENT_BACK, generation=4)])[0] != []
    assert looked(replace(cut, cuts={ORDERS: 3}), [WENT_BACK])[0] != []


def test_the_newest_receipt_of_a_partition_counts() -> None:
    old = replace(LAST, target=place("before"), end=20, generation=4, source_topic_id="first")
    for lasts in ((old, LAST), (LAST, old)):
        assert looked(NOW, lasts=lasts) == ([], {"orders-0": 10})
