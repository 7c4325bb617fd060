"""Topics that would go round: followed through all enabled flows of a file, circles of any length."""

from __future__ import annotations

import pytest

from ferry.config.settings import Settings, parse_settings

IDENTITY = "replication.policy.class = IdentityReplicationPolicy\n"


def settings(flows: str, more: str = "") -> Settings:
    """A file with the flows `ab bc`, every topic of every cluster."""
    aliases = sorted({letter for flow in flows.split() for letter in flow})
    lines = [f"clusters = {', '.join(aliases)}", *(f"{alias}.bootstrap.servers = {alias}:9092" for alias in aliases)]
    lines += [f"{flow[0]}->{flow[1]}.enabled = true" for flow in flows.split()]
    return parse_settings("\n".join(lines) + "\n" + more, "file.properties")


def ways(given: Settings, topic: str) -> dict[str, str]:
    """By flow the way back of `topic`, for the flows that take it and have one."""
    found = {
        str(config.flow): " ".join(map(str, config.topics.selection.way_back(topic)))
        for config in given.flows
        if config.topics.selection.takes(topic)
    }
    return {flow: way for flow, way in found.items() if way}


@pytest.mark.parametrize(
    ("flows", "more", "expected"),
    [
        ("ab", IDENTITY, {}),
        ("ab ac", IDENTITY, {}),
        ("ac bc", IDENTITY, {}),
        ("ab bc cd", IDENTITY, {}),
        ("ab ac bd cd", IDENTITY, {}),
        ("ab ba", IDENTITY, {"a->b": "b->a", "b->a": "a->b"}),
        ("ab bc ca", IDENTITY, {"a->b": "b->c c->a", "b->c": "c->a a->b", "c->a": "a->b b->c"}),
        ("ab bc ca ad", IDENTITY, {"a->b": "b->c c->a", "b->c": "c->a a->b", "c->a": "a->b b->c"}),
        ("ab ba", IDENTITY + "b->a.topics = other\n", {}),
        ("ab ba", IDENTITY + "a->b.topics.exclude = orders\n", {}),
        ("ab ba", "", {}),
        ("ab bc cd da", "", {}),
        ("ab ba", "b->a.replication.policy.class = IdentityReplicationPolicy\n", {"a->b": "b->a", "b->a": "a->b"}),
        ("ab ba", "a->b.replication.policy.separator = _\n", {"a->b": "b->a", "b->a": "a->b"}),
    ],
)
def test_each_flow_of_a_circle_sees_it(flows: str, more: str, expected: dict[str, str]) -> None:
    assert ways(settings(flows, more), "orders") == expected


def test_a_long_circle_is_found() -> None:
    letters = "abcdefghijklmnop"
    given = settings(" ".join(f"{one}{other}" for one, other in zip(letters, letters[1:] + "a", strict=True)), IDENTITY)
    assert len(ways(given, "orders")) == len(letters)


def test_a_flow_into_a_circle_is_not_part_of_it() -> None:
    assert set(ways(settings("xa ab ba", IDENTITY), "orders")) == {"a->b", "b->a"}


def test_an_alias_that_holds_the_separator_hides_origins_and_is_looked_through() -> None:
    text = """
clusters = dc.one, dc.two
dc.one.bootstrap.servers = one:9092
dc.two.bootstrap.servers = two:9092
dc.one->dc.two.enabled = true
dc.two->dc.one.enabled = true
"""
    given = parse_settings(text, "file.properties")
    assert set(ways(given, "orders")) == {"dc.one->dc.two", "dc.two->dc.one"}, "MirrorMaker 2 copies it without end"


def test_six_clusters_across_three_data_centres() -> None:
    flows = "ab ac ba bc ca cb xa yb zc"
    given = settings(flows, "topics = .*\n")
    assert len(given.flows) == 9
    assert ways(given, "orders") == {}, "names show every origin"
    by_name = {str(config.flow): config.topics.selection for config in given.flows}
    # What reached a from its feeder goes to both other centres, and is not sent on from there.
    assert by_name["x->a"].takes("orders")
    assert by_name["a->b"].takes("x.orders")
    assert by_name["b->c"].takes("a.x.orders"), "a copy of a copy, as in MirrorMaker 2"
    assert not by_name["c->a"].takes("b.a.x.orders")
    assert not by_name["b->a"].takes("a.x.orders")
    round_trips = ways(settings(flows, IDENTITY), "orders")
    assert set(round_trips) == {"a->b", "a->c", "b->a", "b->c", "c->a", "c->b"}
    assert not {"x->a", "y->b", "z->c"} & set(round_trips)
