"""Topic ids read as Kafka's tools print them, whichever way a record of the ledger has them."""

from dataclasses import replace
from uuid import UUID

import pytest

from ferry.ledger.receipt_codec import parse_receipt, receipt_json
from ferry.ledger.slice_codec import parse_slice, slice_json
from ferry.model import parse_topic_id, topic_id_text
from ferry.plan.rules.guards import source_trouble, target_trouble
from tests.pure.decide.values import FACTS, RECEIPT, part, piece, target, topic

# Printed by Kafka 4.3.0: `new Uuid(mostSigBits, leastSigBits).toString()`.
ID, TEXT = UUID("b41eb1e5-0b28-44ad-b2a6-5e4d2a9f8f3e"), "tB6x5QsoRK2ypl5NKp-PPg"


@pytest.mark.parametrize(
    ("topic_id", "text"),
    [
        (ID, TEXT),
        (UUID(int=1), "AAAAAAAAAAAAAAAAAAAAAQ"),
        (UUID(int=2**128 - 1), "_" * 21 + "w"),
        (UUID(int=0), ""),
        (None, ""),
    ],
)
def test_an_id_reads_as_kafka_prints_it(topic_id: UUID | None, text: str) -> None:
    assert topic_id_text(topic_id) == text


@pytest.mark.parametrize("text", [TEXT, "", "id-orders", "AAAA-AAAA-AAAA-AAAA-AA"])
def test_what_is_not_dashed_is_left_as_it_is(text: str) -> None:
    assert parse_topic_id(text) == text


def test_a_record_with_a_dashed_id_means_the_same_topic() -> None:
    old = replace(RECEIPT, source_topic_id=str(ID), target_topic_id=str(ID))
    read = parse_receipt(receipt_json(old))
    assert (read.source_topic_id, read.target_topic_id) == (TEXT, TEXT)
    sliced = parse_slice(slice_json(replace(piece(), source_topic_id=str(ID), target_topic_id=str(ID))))
    assert (sliced.source_topic_id, sliced.target_topic_id) == (TEXT, TEXT)
    there = topic("orders", part(), topic_id=TEXT)
    assert source_trouble(FACTS.source, there, 0, read, read.end) is None
    assert target_trouble(FACTS.target, there, 0, target("a.orders", 41, topic_id=TEXT), read, read.end) is None
