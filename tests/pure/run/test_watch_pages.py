"""Which blocks a page of receipts needs: no more than it shows rows of, whatever their sizes; pure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.map_block import ReceiptChain
from ferry.model import TopicPartition
from ferry.reader.watch import pieces_of_page

PLACE = TopicPartition(topic="orders", partition=0)
CHAIN = ReceiptChain(
    lane="live", source=PLACE, target=PLACE, source_topic_id="", target_topic_id="", source_cluster_id="", since=-1
)


@given(st.lists(st.integers(1, 9), max_size=12), st.integers(0, 60), st.integers(1, 20))
def test_a_page_is_cut_from_the_blocks_that_hold_it_and_from_no_others(sizes: list[int], skip: int, most: int) -> None:
    pieces = [(CHAIN, index, count) for index, count in enumerate(sizes)]
    rows = [(index, number) for index, count in enumerate(sizes) for number in range(count)]
    chosen, before = pieces_of_page(pieces, skip, most)
    read = [(index, number) for _, index, count in chosen for number in range(count)]
    wanted = rows[skip : skip + most]
    assert read[skip - before : skip - before + most] == wanted
    assert {index for _, index, _ in chosen} == {index for index, _ in wanted}
