"""The words of a flow."""

import pytest

from ferry.errors import BadInput
from ferry.model import Flow, TopicPartition
from tests.golden import Golden


@pytest.mark.parametrize("text", ["a->b", " a -> b "])
def test_a_flow_is_written_as_in_mirror_makers_file(text: str) -> None:
    assert Flow.parse(text) == Flow(source="a", target="b")
    assert str(Flow.parse(text)) == "a->b"


@pytest.mark.parametrize("text", ["", "a", "a->", "->b", "a->b->c", "a-b"])
def test_anything_else_is_bad_input_with_an_example(text: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        Flow.parse(text)
    golden(caught.value)


def test_a_partition_is_named_as_kafka_names_it() -> None:
    assert str(TopicPartition(topic="orders", partition=3)) == "orders-3"
