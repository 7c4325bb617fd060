"""Which line wins, against MirrorMaker 2's own classes."""

from ferry.config.keys.layers import Entries, Role, Side
from ferry.config.text.properties import parse
from ferry.model import Flow

FLOW = Flow(source="a", target="b")


def effective(text: str, side: Side, role: Role) -> dict[str, str]:
    entries = Entries(file="f", by_key={entry.key: entry for entry in parse(text, "f")})
    return {name: entry.value for name, entry in entries.of_flow_client(FLOW, side, role).items()}


def test_connect_applies_the_producer_override_of_a_flow_last() -> None:
    text = "b.producer.linger.ms = 1\na->b.target.producer.linger.ms = 2\na->b.producer.override.linger.ms = 3\n"
    assert effective(text, "target", "producer") == {"linger.ms": "3"}
    assert effective(text, "source", "producer") == {}


def test_the_last_of_two_equal_keys_wins() -> None:
    assert effective("a.consumer.x = 1\na.consumer.x = 2\n", "source", "consumer") == {"x": "2"}
