"""Topics that a transform names: what of it the source topic alone decides, and how copies are called then."""

from __future__ import annotations

import pickle

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.config.reading.examine import examine
from ferry.config.settings import Settings, parse_settings
from ferry.features.switch.rules.names import Names, names_of
from ferry.plan.rules.flow_names import names_tell_flows_apart
from ferry.policy import DefaultReplicationPolicy, RoutedPolicy, innermost
from tests.golden import Golden, brief

BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
IDENTITY = "replication.policy.class = IdentityReplicationPolicy\n"
CONNECT = "org.apache.kafka.connect.transforms."
ONE = "ferry.transforms = one\nferry.transform.one.topics = orders.*, users\n"


def settings(text: str) -> Settings:
    return parse_settings(BASE + text.replace("@", CONNECT), "f")


def flow_of(text: str) -> FlowConfig:
    return settings(text).flow("a->b")


def target(text: str) -> str:
    return f"{ONE}ferry.transform.one.target = {text}\n"


def routes(*lines: str, predicates: str = "") -> str:
    """`name regex replacement [predicate] [!]`."""
    found = [f"transforms = {', '.join(line.split()[0] for line in lines)}"]
    for line in lines:
        name, regex, replacement, *when = line.split()
        key = f"transforms.{name}"
        found += [f"{key}.type = @RegexRouter", f"{key}.regex = {regex}", f"{key}.replacement = {replacement}"]
        found += [f"{key}.predicate = {when[0]}"] if when else []
        found += [f"{key}.negate = true"] if when[1:] else []
    return "\n".join(found) + "\n" + predicates


def copy(flow: FlowConfig, topic: str) -> str:
    return flow.copy_of(topic)


BY_NAME = "predicates = eu\npredicates.eu.type = @predicates.TopicNameMatches\npredicates.eu.pattern = .*-eu\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (target("concat('eu.', topic)"), {"orders": "eu.orders", "users": "eu.users", "clicks": "a.clicks"}),
        (target("target || '-masked'"), {"orders-1": "a.orders-1-masked", "clicks": "a.clicks"}),
        (IDENTITY + target("concat(topic, '-masked')"), {"orders": "orders-masked"}),
        (target("regexp_replace(target, '^a[.]users$', 'people')"), {"users": "people", "orders": "a.orders"}),
        (routes("r a\\\\.(.*) $1"), {"orders": "orders", "users": "users"}),
        (routes("r a\\\\.(.*) $1-eu", "s (.*)-eu eu-$1 eu", predicates=BY_NAME), {"orders": "eu-orders"}),
        (routes("r .*orders x-eu", "s (.*) $1.rest eu !", predicates=BY_NAME), {"orders": "x-eu", "u": "a.u.rest"}),
    ],
)  # fmt: skip
def test_what_the_source_topic_decides_is_the_name_of_the_copy(text: str, names: dict[str, str]) -> None:
    flow = flow_of(text)
    assert {topic: copy(flow, topic) for topic in names} == names
    assert {topic: copy(flow, topic) for topic in names} == names, "asked again"
    again = pickle.loads(pickle.dumps(flow.topics.policy))
    assert {topic: again.format_remote_topic("a", topic) for topic in names} == names
    identity = text.startswith(IDENTITY)
    assert [flow.first_name(topic) for topic in names] == [topic if identity else f"a.{topic}" for topic in names]


@pytest.mark.parametrize(
    "text",
    [
        target("concat(target, CAST(partition AS STRING))"),
        target("CASE WHEN length(value) > 9 THEN 'big' ELSE target END"),
        target("upper(CAST(value AS STRING))"),
        target("reverse(topic)"),
        target("CASE topic WHEN 'users' THEN 'people' ELSE target END"),
        target("concat(topic, 5)"),
        target("concat('a' 'b' WITH 'c')"),
        target("topic = 'a'"),
        "transforms = t\ntransforms.t.type = @TimestampRouter\n",
        routes("r (.*) $1-x p", predicates="predicates = p\npredicates.p.type = @predicates.RecordIsTombstone\n"),
    ],
    ids=brief,
)
def test_what_a_record_decides_is_not_known(text: str, golden: Golden) -> None:
    flow = flow_of(text)
    (spec,) = flow.records.transforms
    assert spec.target_of("orders", "a.orders") is None
    golden(spec.why_unknown("orders", "a.orders") or "")
    assert copy(flow, "orders") == "a.orders"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (target("concat(target, '-', partition)"), True),
        ("transforms = t\ntransforms.t.type = @TimestampRouter\n", True),
        (target("topic"), False),
        ("transforms = t\ntransforms.t.type = @TimestampRouter\ntransforms.t.predicate = eu\n" + BY_NAME, False),
    ],
    ids=brief,
)
def test_a_file_whose_records_name_copies_is_warned_of(text: str, warned: bool, golden: Golden) -> None:
    found = [
        str(one) for one in examine(BASE + text.replace("@", CONNECT), "f").problems if "record by record" in str(one)
    ]
    assert len(found) == warned
    if warned:
        golden(found[0])


def test_dead_letters_do_not_go_to_a_copy_that_a_transform_names(golden: Golden) -> None:
    letters = "ferry.transform.one.poison = skip\nerrors.deadletterqueue.topic.name = eu\n"
    (found,) = examine(BASE + target("regexp_replace(topic, '^users$', 'eu')") + letters, "f").problems
    golden(str(found))


CHOSEN = (
    "ferry.transform.one.targets = {topic}-0, {topic}-1\nferry.transform.one.partitions = 2\n"
    "a->b.topics = orders, users\n"
)


def test_none_of_the_topics_that_records_choose_goes_back_or_takes_dead_letters(golden: Golden) -> None:
    choosing = IDENTITY + target("concat(topic, '-', partition)") + CHOSEN
    both = settings("b->a.enabled = true\n" + choosing.replace("ferry.transforms", "a->b.ferry.transforms", 1))
    for name in ("users-0", "users-1"):
        assert "a->b makes it by ferry.transform.one" in (both.flow("b->a").topics.selection.why_not(name) or "")
    assert both.flow("b->a").topics.selection.why_not("users-2") is None
    letters = "ferry.transform.one.poison = skip\nerrors.deadletterqueue.topic.name = users-1\n"
    (found,) = examine(BASE + choosing + letters, "f").problems
    golden(found.message, "a topic of dead letters")


def test_a_circle_through_any_of_the_topics_that_records_choose_is_seen() -> None:
    choosing = target("concat(topic, '-', partition)").replace("ferry.transforms", "a->b.ferry.transforms")
    more = "b->a.enabled = true\nb->a.ferry.transforms = back\nferry.transform.back.topics = users-1\n"
    more += "ferry.transform.back.target = 'users'\n"
    flow = settings(IDENTITY + choosing + CHOSEN + more).flow("a->b")
    assert [str(one) for one in flow.topics.selection.way_back("users")] == ["b->a"]
    assert flow.topics.selection.way_back("orders") == ()


def test_a_router_by_time_that_is_for_other_topics_leaves_a_name_known() -> None:
    text = "transforms = t\ntransforms.t.type = @TimestampRouter\ntransforms.t.predicate = eu\n" + BY_NAME
    (spec,) = flow_of(text).records.transforms
    assert spec.target_of("orders", "a.orders") == "a.orders"
    assert spec.target_of("orders", "a.orders-eu") is None


def test_a_flow_whose_transforms_name_no_topic_keeps_its_policy() -> None:
    assert isinstance(flow_of(ONE + "ferry.transform.one.where = TRUE\n").topics.policy, DefaultReplicationPolicy)


def test_a_topic_that_two_transforms_name_has_the_policys_name_until_it_is_refused() -> None:
    more = "ferry.transform.two.topics = orders\nferry.transform.two.target = 'x'\n"
    flow = flow_of(target("'y'").replace("= one", "= one, two", 1) + more)
    assert (copy(flow, "orders"), copy(flow, "users")) == ("a.orders", "y")


def test_a_lane_calls_the_renamed_copy_by_its_own_name() -> None:
    flow = in_lane(flow_of(target("concat('eu.', topic)")), "backfill-x")
    assert copy(flow, "orders") == "eu.orders.backfill.backfill-x"
    assert flow.first_name("orders") == "a.orders"
    assert isinstance(innermost(flow.topics.policy), DefaultReplicationPolicy)
    assert not names_tell_flows_apart(flow)


@pytest.mark.parametrize(
    ("source", "target", "policy", "apart"),
    [
        ("us", "eu", "", True),
        ("us.east", "eu", "", False),
        ("us", "eu.west", "", False),
        ("us.east", "eu.west", "replication.policy.separator = _\n", True),
        ("us_east", "eu", "replication.policy.separator = _\n", False),
    ],
)
def test_names_do_not_keep_flows_apart_if_an_alias_holds_the_separator(
    source: str, target: str, policy: str, apart: bool
) -> None:
    """`us.east.orders` is of `us.east`, or `east.orders` of `us`; and it does not show that it came from `us.east`."""
    servers = f"{source}.bootstrap.servers = h:1\n{target}.bootstrap.servers = h:2\n"
    text = f"clusters = {source}, {target}\n{servers}{source}->{target}.enabled = true\n{policy}"
    assert names_tell_flows_apart(parse_settings(text, "f").flow(f"{source}->{target}")) is apart


@pytest.mark.parametrize("policy", ["", IDENTITY])
def test_clients_find_a_renamed_copy_beside_the_topic_that_producers_write(policy: str) -> None:
    flow = flow_of(policy + target("concat(topic, '-eu')"))
    assert names_of(flow, "orders", {"a", "b"}) == Names(topic="orders", copy="orders-eu", live="orders")


@pytest.mark.parametrize("policy", ["", IDENTITY])
@pytest.mark.parametrize("topic", ["shop.orders", "shop.eu.orders", "ab.orders", "orders.", "cc.orders"])
def test_a_dot_in_a_topics_own_name_does_not_make_it_a_copy(policy: str, topic: str) -> None:
    flow = flow_of(policy)
    copy = topic if policy else f"a.{topic}"
    assert names_of(flow, topic, {"a", "b", "c"}) == Names(topic=topic, copy=copy, live=topic)


def test_nobody_produces_to_what_came_from_another_cluster_of_the_file() -> None:
    assert names_of(flow_of(""), "c.orders", {"a", "b", "c"}) is None


@pytest.mark.parametrize("policy", ["", IDENTITY])
def test_a_renamed_copy_does_not_go_back(policy: str, golden: Golden) -> None:
    both = settings(
        "b->a.enabled = true\n" + policy + target("concat(topic, '-eu')").replace("ferry.", "a->b.ferry.", 1)
    )
    there, back = both.flow("a->b"), both.flow("b->a")
    assert isinstance(there.topics.policy, RoutedPolicy)
    assert not names_tell_flows_apart(back), "its ledger says what came from there"
    why = back.topics.selection.why_not("users-eu")
    assert why is not None
    golden(why)
