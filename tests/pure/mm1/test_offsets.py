"""Positions of a consumer group, as Kafka's tool exports them."""

import pytest

from ferry.config.flow.start import StartOffsets, parse_start
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.offsets import read_offsets
from ferry.model import TopicPartition
from tests.golden import Golden


@pytest.mark.parametrize(
    "text", ["b,0,7\na,1,5\na,0,0\n", 'g,"b",0,7\ng,a,1,5\n\ng,a,0,0', " b , 0 , 7\na,1,5\r\na,0,0"]
)
def test_an_export_is_a_start(text: str) -> None:
    start = parse_start(read_offsets(text, "o.csv"))
    assert start == StartOffsets(
        offsets={
            TopicPartition(topic="a", partition=0): 0,
            TopicPartition(topic="a", partition=1): 5,
            TopicPartition(topic="b", partition=0): 7,
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,0,1\na,0\n",
        "a,0,-1",
        "TOPIC,PARTITION,NEW-OFFSET",
        "a,0,1\na,0,2",
        "g,a,0,1\nh,a,1,1",
    ],
)
def test_what_cannot_be_read_is_refused(text: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        read_offsets(text, "o.csv")
    golden(caught.value)
