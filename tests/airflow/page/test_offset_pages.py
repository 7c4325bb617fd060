"""What the page says of receipts and offsets: where a record went, and which receipt says so."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest

from ferry.features.groups.rules.offset_map import Ahead, Approximate, Before, Exact, InGap, LogStart, Translated
from ferry.features.groups.rules.translation import Translation
from ferry.ledger.history import Holder, PastState
from ferry.ledger.ledger import UNREAD
from ferry.model import Segment, TopicPartition
from ferry.reader.repartitioned import Sought, story_of
from ferry.reader.watch import FlowPoll
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.values import COPY, NINE, ORDERS, answered, digest
from tests.golden import Golden
from tests.pure.decide.test_dealt_to import DEALT
from tests.pure.decide.values import RECEIPT

OUTCOMES: dict[str, Translated] = {
    "the same record": Exact(offset=5),
    "after the last record": Exact(offset=5, read_all=True),
    "in a gap": InGap(offset=5),
    "not copied yet": Ahead(offset=5),
    "before what was copied": Before(offset=5),
    "deleted on both sides": Before(offset=5, pruned=3),
    "of another replicator": Approximate(offset=5),
    "deleted there": LogStart(offset=5),
}


@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_each_way_in_which_an_offset_is_found_is_told(desk: Desk, outcome: Translated, golden: Golden) -> None:
    assert {type(one) for one in OUTCOMES.values()} == set(get_args(Translated))
    copy = TopicPartition(topic="primary.orders", partition=0)
    found = Translation(source=ORDERS, target=copy, outcome=outcome)
    answered(desk, ("offset", ORDERS, 7, False, ""), (found, []))
    page = desk.page(f"{HERE}/offsets?topic=orders&partition=0&offset=7")
    answer = page.partition('<b id="other-offset">5</b>primary.orders-0')[2]
    golden(answer[answer.index("<p") :].partition(">")[2].partition("</p>")[0])


def test_a_partition_of_a_dealt_topic_has_no_receipts_of_its_own(desk: Desk) -> None:
    """Its number on the target is none of its own: neither is it shown, nor asked by."""
    lags = (replace(lag("orders", 0, 5), dealt=True), lag("clicks", 0, 5))
    for topic in ("orders", "clicks"):
        answered(desk, ("receipts", TopicPartition(topic=topic, partition=0), 1, ""), ([], 0))
    desk.watcher.see(FlowPoll(view=replace(UNREAD, end=5), lags=lags, troubles={}))
    desk.watcher.has(("dealt", ORDERS, 1, Sought(offset=None), ""), None)
    dealt = desk.page(f"{HERE}/partition/orders/0")
    assert "repartitioned up to offset 10 of 15" in dealt
    assert "They go to all partitions of primary.orders on backup" in dealt
    assert "nothing of it is copied yet, or its receipts were pruned" not in dealt
    assert "/offsets?" not in dealt
    assert 'name="offset"' not in dealt
    copied = desk.page(f"{HERE}/partition/clicks/0")
    assert "nothing of it is copied yet, or its receipts were pruned" in copied
    assert 'name="offset"' in copied
    assert "primary.orders, repartitioned<" in desk.page(f"{HERE}/topic/orders")
    assert "primary.clicks-0<" in desk.page(f"{HERE}/topic/clicks")


def test_a_partition_that_is_dealt_says_what_went_to_which_of_the_others(desk: Desk) -> None:
    answered(desk, ("receipts", ORDERS, 1, ""), ([], 0))
    desk.watcher.see(
        FlowPoll(view=replace(UNREAD, end=5), lags=(replace(lag("orders", 0, 5), dealt=True),), troubles={})
    )

    def asked(sought: Sought, page: int = 1) -> str:
        desk.watcher.has(
            ("dealt", ORDERS, page, sought, ""),
            story_of(DEALT, TopicPartition(topic="t", partition=0), sought, 50 * (page - 1), 50),
        )
        query = "" if sought.offset is None else f"&offset={sought.offset}&key={sought.key}"
        return desk.page(f"{HERE}/partition/orders/0?page={page}{query}")

    page = asked(Sought(offset=None))
    assert 'id="to:a.t-0"' in page
    assert f'href="{HERE}/run/r-40"' in page
    assert "[113, 116)" in page
    page = asked(Sought(offset=20))
    where = page[page.index("Where source offset 20 is") :].split("</table>")[0]
    assert ("not here" in where, "among these" in where, "[113, 116)" in where) == (True, True, True)
    page = asked(Sought(offset=19, key="k17"))
    where = page[page.index("Where source offset 19 is") :].split("</table>")[0]
    assert where.count('scope="row"') == 1
    assert 'value="k17"' in page
    led = desk.client.get(f"{HERE}/offsets?topic=orders&partition=0&offset=20", follow_redirects=False)
    assert (led.status_code, led.headers["location"]) == (307, "partition/orders/0?offset=20")


CUT = replace(
    RECEIPT,
    source=ORDERS,
    target=COPY,
    start=0,
    end=24_000,
    segments=tuple(Segment(source_start=100 * at, target_start=90 * at, count=90) for at in range(240)),
)


def test_a_receipt_of_many_segments_leads_to_all_of_them_and_each_of_them_both_ways(desk: Desk) -> None:
    answered(desk, ("receipts", ORDERS, 1, ""), ([CUT], 1))
    page = desk.page(f"{HERE}/partition/orders/0")
    assert f'href="{HERE}/receipt/orders/0/0?run={CUT.run}">All 240 segments' in page
    assert f'href="{HERE}/offsets?topic=primary.orders&amp;partition=0&amp;offset=90&amp;back=true"' in page
    assert 'name="topic" value="primary.orders"' in page
    assert 'name="back" value="true"' in page
    answered(desk, ("receipt", ORDERS, 0, CUT.run, ""), CUT)
    last = desk.page(f"{HERE}/receipt/orders/0/0?run={CUT.run}&page=5")
    assert "201\u2013240 of 240 segments" in last
    assert "23900\u201323989" in last
    answered(desk, ("receipt", ORDERS, 7, "", ""), None)
    assert "no such receipt" in desk.page(f"{HERE}/receipt/orders/0/7")


def test_an_answer_leads_back_and_to_the_partition_and_to_the_receipt(desk: Desk) -> None:
    found = Translation(source=ORDERS, target=COPY, outcome=Exact(offset=95))
    answered(
        desk,
        ("offset", ORDERS, 105, False, ""),
        (found, [Holder(receipt=CUT, segment=CUT.segments[1], target_offset=95)]),
    )
    page = desk.page(f"{HERE}/offsets?topic=orders&partition=0&offset=105")
    assert f'href="{HERE}/offsets?topic=primary.orders&amp;partition=0&amp;offset=95&amp;back=true"' in page
    assert f'href="{HERE}/partition/orders/0"' in page
    assert f'href="{HERE}/receipt/orders/0/0?run={CUT.run}"' in page


@pytest.mark.parametrize(("lane", "is_timed"), [("", True), ("backfill-a", False)])
def test_the_run_that_copied_an_offset_has_the_name_that_it_has_in_lists(desk: Desk, lane: str, is_timed: bool) -> None:
    """A run of another lane may have the id of one of the live lane, which began at another time."""
    run = "scheduled__2026-11-23T19:18:04+00:00"
    found = Translation(source=ORDERS, target=COPY, outcome=Exact(offset=95))
    holder = Holder(receipt=replace(CUT, run=run), segment=CUT.segments[1], target_offset=95)
    answered(desk, ("offset", ORDERS, 105, False, lane), (found, [holder]))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest(run, PastState.SUCCESS)])
    where = f"{HERE}/lane/{lane}" if lane else HERE
    page = desk.page(f"{where}/offsets?topic=orders&partition=0&offset=105")
    link = page.partition(f'href="{where}/run/')[2].partition("</a>")[0]
    assert ("</time> scheduled<" in link) == is_timed


def test_a_page_of_receipts_beyond_the_last_is_the_last(desk: Desk) -> None:
    answered(desk, ("receipts", ORDERS, 9, ""), ([], 70))
    answer = desk.client.get(f"{HERE}/partition/orders/0?page=9", follow_redirects=False)
    assert answer.headers["location"] == "?page=2"


def test_each_receipt_of_a_partition_names_its_run_by_the_time_of_the_run(desk: Desk) -> None:
    runs = [f"scheduled__2026-11-23T19:{minute}:04+00:00" for minute in (18, 23)]
    answered(desk, ("receipts", ORDERS, 1, ""), ([replace(CUT, run=run) for run in runs], 2))
    digests = [replace(digest(run), started_ms=NINE + 1_000 * at) for at, run in enumerate(runs)]
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5),), troubles={}), digests)
    page = desk.page(f"{HERE}/partition/orders/0")
    links = re.findall(rf'<a href="{HERE}/run/[^>]*>(.*?)</a>', page)
    times = [re.findall(r'datetime="([^"]*)"', link) for link in links]
    assert len(links) == len({str(one) for one in times}) == 2
    assert all(times)
