"""Transforms of a flow as the file has them: Ferry's own keys, and Connect's classes."""

from __future__ import annotations

import pytest

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.steps import (
    AddHeader,
    Cast,
    Change,
    Drop,
    DropHeaders,
    HasHeader,
    HashKey,
    IsTombstone,
    Json,
    Keep,
    OnlyFields,
    Provenance,
    Rename,
    Route,
    RouteByTime,
    Sample,
    TopicMatches,
    When,
)
from ferry.config.flow.transforms import Poison, TransformSpec
from ferry.config.reading.examine import examine
from ferry.config.reasons import why_topic
from ferry.config.settings import parse_settings
from ferry.config.text.problem import Severity
from ferry.errors import BadInput, Refused
from tests.golden import Golden, brief

BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
SALT = "ferry.transform.one.salt = 0123456789abcdef\n"
CONNECT = "org.apache.kafka.connect.transforms."


def transforms(text: str) -> tuple[TransformSpec, ...]:
    return parse_settings(BASE + text, "f").flow("a->b").records.transforms


BY_RECORD = "ferry.transform.one.target = concat(topic, '-', partition)\n"
TWO = "ferry.transform.one.partitions = 2\n"


def test_topics_of_which_records_choose_are_listed_for_each_source_topic() -> None:
    text = "ferry.transforms = one\nferry.transform.one.topics = orders, payments\n" + BY_RECORD + TWO
    flow = parse_settings(BASE + text + "ferry.transform.one.targets = {topic}-0, x.{target}\n", "f").flow("a->b")
    assert flow.copies_of("orders") == ("orders-0", "x.a.orders")
    assert flow.topics.policy.format_remote_topic("a", "payments") == "payments-0"
    assert flow.copies_of("clicks") == ("a.clicks",)
    (one,) = flow.records.transforms
    assert (one.target_of("orders", "a.orders"), one.why_unknown("orders", "a.orders")) == ("orders-0", None)
    (without,) = transforms(text)
    assert without.target_of("orders", "a.orders") is None
    assert one.digest(spark_version="4") != without.digest(spark_version="4")
    assert flow.digest() != parse_settings(BASE + text, "f").flow("a->b").digest()
    assert not any("record by record" in said for said in errors(text + "ferry.transform.one.targets = {topic}-0\n"))


def errors(text: str) -> list[str]:
    return [str(one) for one in examine(BASE + text, "f").problems]


def test_a_file_without_transforms_has_none_and_keeps_its_digest() -> None:
    plain = parse_settings(BASE, "f").flow("a->b")
    assert plain.records.transforms == ()
    assert plain.transform_of("orders") is None
    unused = parse_settings(BASE + "b->a.ferry.transform.one.topics = orders\n", "f").flow("a->b")
    assert unused.digest() == plain.digest()


def test_steps_have_an_order_of_their_own_whatever_that_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "a long enough secret")
    (one,) = transforms(
        "ferry.transforms = one\nferry.transform.one.target = concat(target, '-x')\nferry.transform.one.hash = $.mail\n"
        "ferry.transform.one.salt = ${env:PLANTED}\na->b.ferry.transform.one.topics = pay.*, refunds\n"
        "ferry.transform.one.redact = $.card.no, $.lines[*].note\nferry.transform.one.hash.key = true\n"
        "ferry.transform.one.remove = $['a b']\nferry.transform.one.sample = 0.5%\n"
        "ferry.transform.one.provenance = true\n"
        "ferry.transform.one.where = value IS NOT NULL\nferry.transform.one.partitions = 12\n"
        "ferry.transform.one.poison = skip\n"
    )
    assert one.steps == (
        Keep(sql="value IS NOT NULL"),
        Sample(parts_per_million=5000),
        Json(paths=("$['a b']",), change=Change.REMOVE),
        Json(paths=("$.card.no", "$.lines[*].note"), change=Change.REDACT),
        Json(paths=("$.mail",), change=Change.HASH),
        HashKey(),
        Provenance(cluster="a"),
        Rename(sql="concat(target, '-x')"),
    )
    assert (one.partitions, one.poison, one.secret()) == (12, Poison.SKIP, b"a long enough secret")
    assert [one.topics.matches(name) for name in ("payments", "refunds", "orders")] == [True, True, False]


def test_secrets_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    text = BASE + "ferry.transforms = one\nferry.transform.one.topics = x\nferry.transform.one.hash.key = true\n" + SALT
    examined = examine(text, "f")
    shown = repr(examined.flows) + repr(examined.settings) + "".join(map(str, examined.problems))
    assert "0123456789abcdef" not in shown


@pytest.mark.slow
def test_the_digest_changes_with_all_that_changes_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    head = "ferry.transforms = one\nferry.transform.one.topics = x, y\nferry.transform.one.hash.key = true\n"

    def digest(more: str, version: str = "4.2.0", **named: object) -> str:
        return transforms(head + more)[0].digest(spark_version=version, **named)  # type: ignore[arg-type]

    salted = digest(SALT)
    assert salted == digest(SALT) == digest("ferry.transform.one.salt = 0123456789\\\nabcdef\n")
    more = head.replace("x, y", "y, z.*, x")
    assert transforms(more + SALT)[0].digest(spark_version="4.2.0") == salted, "what a record becomes is the same"
    different = [
        digest(SALT.replace("f\n", "e\n")),
        digest(SALT, "4.2.1"),
        digest(SALT, time_zone="Europe/Paris"),
        digest(SALT, ansi=False),
        digest(SALT, code="x"),
        digest(SALT + "ferry.transform.one.partitions = 3\n"),
        digest(SALT + "ferry.transform.one.where = offset > 1\n"),
    ]
    assert len({salted, *different}) == 8


def test_a_topic_has_one_transform(golden: Golden) -> None:
    flow = parse_settings(
        BASE + "ferry.transforms = one, two\nferry.transform.one.topics = pay.*\nferry.transform.one.sample = 10%\n"
        "ferry.transform.two.topics = .*ments\nferry.transform.two.partitions = 3\n",
        "f",
    ).flow("a->b")
    assert flow.transform_of("orders") is None
    found = flow.transform_of("shipments")
    assert found is not None
    assert found.name == "two"
    with pytest.raises(Refused) as caught:
        flow.transform_of("payments")
    golden(caught.value)


@pytest.mark.parametrize(
    "lines",
    [
        "ferry.transforms = one, one",
        "ferry.transforms = a b",
        "ferry.transform.one.topics = x\nferry.transforms = one",
        "ferry.transforms = one\nferry.transform.one.sample = 5%",
        "ferry.transform.one.sample = 5",
        "ferry.transform.one.sample = 0%",
        "ferry.transform.one.sample = 101%",
        "ferry.transform.one.redact = card.no",
        "ferry.transform.one.redact = $",
        "ferry.transform.one.redact = $.a[0]",
        "ferry.transform.one.hash = $.a",
        "ferry.transform.one.salt = short\nferry.transform.one.hash = $.a",
        "ferry.transform.one.salt = 0123456789abcdef\nferry.transform.one.sample = 1%",
        "ferry.transform.one.function = nowhere",
        "ferry.transform.one.sql = SELECT 1\nferry.transform.one.function = a:b",
        "ferry.transform.one.cast = $.a",
        "ferry.transform.one.cast = $.a:int",
        "ferry.transform.one.cast = a:int8",
        "ferry.transform.one.cast.key = $:int8, $.a:string",
        "ferry.transform.one.timeout.ms = 1000",
        "ferry.transform.one.timeout.ms = soon",
        "ferry.transform.one.partitions = 0",
        BY_RECORD + "ferry.transform.one.targets = a, b",
        BY_RECORD + TWO + "ferry.transform.one.targets = a, b c",
        BY_RECORD + TWO + "ferry.transform.one.targets = {Topic}",
        BY_RECORD + TWO + "ferry.transform.one.targets = a, b, a",
        BY_RECORD + TWO + f"ferry.transform.one.targets = {','.join(map(str, range(201)))}",
        TWO + "ferry.transform.one.targets = a, b",
        "ferry.transform.one.poison = retry",
        "ferry.transform.one.poison = pass\nferry.transform.one.redact = $.a",
        "ferry.transform.one.wehre = x",
    ],
    ids=brief,
)
def test_slips_are_told_with_their_remedy(lines: str, golden: Golden) -> None:
    whole = lines if "ferry.transforms" in lines else f"ferry.transforms = one\nferry.transform.one.topics = x\n{lines}"
    golden("\n".join(errors(whole)))


def chain(*lines: str) -> str:
    names = dict.fromkeys(line.split(".")[0] for line in lines if not line.startswith("predicates"))
    body = "\n".join(line if line.startswith("predicates") else f"transforms.{line}" for line in lines)
    return f"transforms = {', '.join(names)}\n{body}\n".replace(
        "type = predicates", f"type = {CONNECT}predicates"
    ).replace("type = @", f"type = {CONNECT}")


def test_casts_are_by_type_and_of_all_or_of_fields(golden: Golden) -> None:
    ((one,), (two,)) = (
        transforms(f"ferry.transforms = one\nferry.transform.one.topics = x\nferry.transform.one.{lines}\n")
        for lines in (
            "cast = $.a:string, $['b:c'].d[*]:int8, $.e:string\nferry.transform.one.redact = $.f",
            "cast = $:string\nferry.transform.one.cast.key = $.id:int64\nferry.transform.one.timeout.ms = 60000",
        )
    )
    assert one.steps == (
        Json(paths=("$.f",), change=Change.REDACT),
        Cast(paths=("$.a", "$.e"), to="string"),
        Cast(paths=("$['b:c'].d[*]",), to="int8"),
    )
    assert two.steps == (Cast(paths=(), to="string"), Cast(paths=("$.id",), to="int64", of_key=True))
    assert two.timeout_ms == 60_000
    (found,) = transforms(
        chain("v.type = @Cast$Value", "v.spec = a:int8,b:string, c.d:INT8", "k.type = @Cast$Key", "k.spec = string")
    )
    assert found.steps == (
        Cast(paths=("$['a']", "$['c.d']"), to="int8", is_object=True),
        Cast(paths=("$['b']",), to="string", is_object=True),
        Cast(paths=(), to="string", of_key=True),
    )
    for spec in ("a:int", "int8, a:int8"):
        golden("\n".join(errors(chain("v.type = @Cast$Value", f"v.spec = {spec}"))), spec)


def test_connects_classes_become_steps() -> None:
    (found,) = transforms(
        chain(
            "drop.type = @Filter", "drop.predicate = gone", "h.type = @InsertHeader", "h.header = origin",
            "h.value.literal = west", "d.type = @DropHeaders", "d.headers = trace, span", "d.predicate = traced",
            "r.type = @ReplaceField$Value", "r.exclude = ssn", "r.include = id, name", "r.renames = id:key",
            "m.type = @MaskField$Value", "m.fields = card", "m.replacement = ***", "m.predicate = pay",
            "m.negate = true", "route.type = @RegexRouter", "route.regex = (.*)-v1", "route.replacement = $1",
            "t.type = @TimestampRouter", "t.topic.format = ${topic}.${timestamp}", "t.timestamp.format = yyyy-MM",
            "predicates = gone, traced, pay", "predicates.gone.type = predicates.RecordIsTombstone",
            "predicates.traced.type = predicates.HasHeaderKey", "predicates.traced.name = trace",
            "predicates.pay.type = predicates.TopicNameMatches", "predicates.pay.pattern = pay.*",
        )
    )  # fmt: skip
    assert found.steps == (
        Drop(when=When(test=IsTombstone())),
        AddHeader(name="origin", value="west"),
        DropHeaders(names=("trace", "span"), when=When(test=HasHeader(name="trace"))),
        Json(paths=("$['ssn']",), change=Change.REMOVE, is_object=True),
        OnlyFields(include=("id", "name"), renames=(("id", "key"),)),
        Json(
            paths=("$['card']",), change=Change.REDACT, replacement="***", is_object=True,
            when=When(test=TopicMatches(pattern="pay.*"), negate=True),
        ),
        Route(pattern="(.*)-v1", replacement="$1"),
        RouteByTime(topic_format="${topic}.${timestamp}", time_format="yyyy-MM"),
    )  # fmt: skip
    assert found.topics.matches("anything")
    assert found.poison is Poison.FAIL
    assert examine(BASE + chain("h.type = @InsertHeader", "h.header = x", "h.value.literal = y"), "f").problems == ()


@pytest.mark.parametrize(
    "lines",
    [
        ("x.type = com.example.Mask",),
        ("x.type = @MaskField$Key", "x.fields = a"),
        ("x.type = @MaskField$Value",),
        ("x.type = @MaskField$Value", "x.fields = a", "x.field = b"),
        ("x.type = @ReplaceField$Value", "x.renames = a"),
        ("x.type = @Filter", "x.predicate = p"),
        ("x.type = @Filter", "x.negate = true"),
        ("x.type = @Filter", "x.predicate = p", "predicates = p", "predicates.p.type = com.example.P"),
        ("x.type = @RegexRouter", "x.regex = (", "x.replacement = a"),
        ("x.type = @RegexRouter", "x.regex = (a)", "x.replacement = $2"),
        ("x.type = @TimestampRouter", "x.timestamp.format = EEE"),
        ("x.type = @TimestampRouter", "x.timestamp.format = yyyyMMMM"),
        ("x.type = @Filter", "ferry.transforms = x"),
    ], ids=brief,
)  # fmt: skip
def test_what_is_not_known_of_connect_is_refused_by_name(lines: tuple[str, ...], golden: Golden) -> None:
    own = [line for line in lines if line.startswith("ferry.")]
    text = chain(*(line for line in lines if line not in own)) + "\n".join(own)
    if own:
        text += "\nferry.transform.x.topics = a\nferry.transform.x.sample = 1%\n"
    golden("\n".join(errors(text)))


def test_a_refused_class_stops_the_file() -> None:
    with pytest.raises(BadInput, match="HoistField"):
        parse_settings(BASE + chain("x.type = @HoistField$Value"), "f")


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("x.type = @RegexRouter\ntransforms.x.regex = a\\.(.*)\ntransforms.x.replacement = b-$1", "b-orders"),
        ("x.type = @RegexRouter\ntransforms.x.regex = orders\ntransforms.x.replacement = b", "a.orders"),
        ("x.type = @TimestampRouter", None),
    ],
)
def test_where_records_of_a_topic_go_is_known_before_they_are_read(lines: str, wanted: str | None) -> None:
    (found,) = transforms(f"transforms = x\ntransforms.{lines}\n".replace("@", CONNECT).replace("a\\.", "a\\\\."))
    assert found.target_of("orders", "a.orders") == wanted


BY_DAY = f"transforms = t\ntransforms.t.type = {CONNECT}TimestampRouter\n"
OWN = "ferry.transform.transforms."


def test_connects_transforms_take_partitions_and_a_list_of_topics() -> None:
    text = f"{BY_DAY}{OWN}partitions = 6\n{OWN}targets = {{target}}-20261120, {{target}}-20261121\n"
    assert errors(text) == []
    (found,) = transforms(text)
    assert found.partitions == 6
    assert found.targets_of("orders", "a.orders") == ("a.orders-20261120", "a.orders-20261121")
    assert not any("record by record" in str(one) for one in examine(BASE + text, "f").problems)


@pytest.mark.parametrize(
    "text",
    [
        f"{BY_DAY}{OWN}targets = x",
        f"{OWN}targets = x\n{OWN}partitions = 2\n{BY_DAY.replace('TimestampRouter', 'Filter')}",
        f"{BY_DAY}{OWN}where = TRUE",
        f"{BY_DAY}{OWN}partitions = none",
    ],
    ids=["no partitions", "no router", "another key", "no number"],
)
def test_other_lines_of_connects_transforms_are_told(text: str, golden: Golden) -> None:
    golden("\n".join(errors(text)))


ONE = "ferry.transforms = one\nferry.transform.one.topics = x\nferry.transform.one.where = TRUE\n"
LETTERS = "errors.deadletterqueue.topic."


def letters(text: str) -> DeadLetters:
    return parse_settings(BASE + text, "f").flow("a->b").records.dead_letters


def test_errors_tolerance_says_what_becomes_of_poison_where_no_transform_does() -> None:
    def poison(text: str) -> list[Poison]:
        return [one.poison for one in transforms(ONE + text)]

    assert poison("") == poison("errors.tolerance = none\n") == [Poison.FAIL]
    assert poison("errors.tolerance = all\n") == poison("a->b.errors.tolerance = all\n") == [Poison.SKIP]
    assert poison("errors.tolerance = all\nferry.transform.one.poison = fail\n") == [Poison.FAIL]
    assert poison("ferry.transform.one.poison = skip\n") == [Poison.SKIP]
    (connect,) = transforms(f"errors.tolerance = all\ntransforms = t\ntransforms.t.type = {CONNECT}Filter\n")
    assert connect.poison is Poison.SKIP
    (wrong,) = errors(ONE + "errors.tolerance = some\n")
    assert "errors.tolerance" in wrong
    assert "none" in wrong


def test_dead_letters_have_a_topic_of_their_own() -> None:
    skip = ONE + "ferry.transform.one.poison = skip\n"
    assert letters(skip) == DeadLetters(topic="ferry-dead-letters.a.internal")
    own = skip + f"{LETTERS}name = dead\na->b.{LETTERS}replication.factor = 2\n"
    assert letters(own + "errors.deadletterqueue.context.headers.enable = false\n") == DeadLetters(
        topic="dead", replication_factor=2, context=False
    )
    plain, named = (parse_settings(BASE + one, "f").flow("a->b") for one in (skip, own))
    assert plain.digest() != named.digest()
    of_old = parse_settings(BASE + ONE, "f").flow("a->b").digest()
    assert (
        parse_settings(BASE + ONE + f"{LETTERS}replication.factor = -1\n", "f").flow("a->b").digest() != plain.digest()
    )
    assert of_old != plain.digest()


@pytest.mark.parametrize(
    "lines",
    [
        "topics = x\n" + LETTERS + "name = a.x",
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\ntopics = .*\n"
        + LETTERS
        + "name = dead",
        LETTERS + "name = ferry-ledger.a.internal",
        LETTERS + "name = heartbeats",
        LETTERS + "name = no/name",
        LETTERS + "replication.factor = 0",
    ],
    ids=brief,
)
def test_a_topic_that_is_for_something_else_takes_no_dead_letters(lines: str, golden: Golden) -> None:
    (found,) = errors(f"{ONE}ferry.transform.one.poison = skip\n{lines}\n")
    golden(found)


def test_a_dead_letters_line_without_dead_letters_is_told(golden: Golden) -> None:
    (found,) = errors(f"{ONE}{LETTERS}name = dead\n")
    golden(found)


BOTH = BASE + "b->a.enabled = true\ntopics = pay.*, plain\n"
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
ONE_WAY = "a->b.ferry.transforms = one\nferry.transform.one.topics = pay.*\nferry.transform.one.where = true\n"


def test_what_the_flow_the_other_way_transforms_does_not_go_back(golden: Golden) -> None:
    settings = parse_settings(BOTH + IDENTITY + ONE_WAY, "f")
    back = settings.flow("b->a")
    assert back.topics.selection.takes("plain")
    assert not back.topics.selection.takes("payments")
    golden(back.topics.selection.why_not("payments"), "in the other flow's")
    why = why_topic(back, settings.origins[back.flow], "payments")
    assert (why.taken, "a->b" in why.reason) == (False, True)
    golden(why.reason, "in the flow's words")
    forward = settings.flow("a->b").topics.selection
    assert forward.takes("payments")
    assert forward.way_back("payments") == (), "nothing goes round any more"
    assert forward.way_back("plain") == (back.flow,)


def test_with_names_of_their_own_what_producers_write_there_is_another_topic() -> None:
    assert parse_settings(BOTH + ONE_WAY, "f").flow("b->a").topics.selection.takes("payments")


def test_what_both_flows_transform_each_transforms() -> None:
    both = IDENTITY + ONE_WAY.replace("a->b.", "")
    assert all(one.topics.selection.takes("payments") for one in parse_settings(BOTH + both, "f").flows)


TWO_LISTED = "ferry.transforms = masked\nferry.transform.masked.topics = a\nferry.transform.masked.redact = $.card\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TWO_LISTED + "ferry.transform.maskd.redact = $.pin\n", 8),
        (TWO_LISTED + "ferry.transform.y.topics = b\nferry.transform.y.where = true\n", 8),
        ("ferry.transform.y.topics = b\n", 5),
        ("a->b.ferry.transform.y.redact = $.pin\n", 5),
        (TWO_LISTED + "a->b.ferry.transforms =\n", 6),
        (f"transforms.m.type = {CONNECT}MaskField$Value\ntransforms.m.fields = pin\n", 5),
        ("ferry.transform.transforms.targets = x\n", 5),
    ],
    ids=brief,
)
def test_a_transform_that_no_flow_lists_is_an_error_by_its_line(text: str, line: int, golden: Golden) -> None:
    (problem,) = examine(BASE + text, "f").problems
    assert (problem.severity, problem.line) == (Severity.ERROR, line)
    golden(problem.message)
    with pytest.raises(BadInput, match=f"f:{line}: "):
        parse_settings(BASE + text, "f")


def test_lines_that_one_enabled_flow_lists_or_that_are_of_none_that_is_enabled_are_no_error() -> None:
    more = "clusters = a, b, c\nc.bootstrap.servers = h:3\na->c.enabled = true\n"
    base = BASE.replace("clusters = a, b\n", more)
    shared = "ferry.transform.one.topics = x\nferry.transform.one.where = true\na->c.ferry.transforms = one\n"
    assert not examine(base + shared, "f").problems
    assert not examine(BASE + "b->a.enabled = false\nb->a.ferry.transform.y.redact = $.pin\n", "f").problems


@pytest.mark.parametrize(
    "wrong",
    ["partitions = 0", "redact = card.number", "sample = 200%", "cast = x", "hash.key = perhaps", "wher = true"],
)
def test_a_step_that_is_wrong_is_the_only_error(wrong: str) -> None:
    text = f"ferry.transforms = one\nferry.transform.one.topics = a\nferry.transform.one.{wrong}\n"
    (problem,) = examine(BASE + text, "f").problems
    assert problem.key == f"ferry.transform.one.{wrong.partition(' ')[0]}"


MASKED = "ferry.transforms = masked\nferry.transform.masked.redact = $.card\n"


@pytest.mark.parametrize(
    ("topics", "of_transform", "is_wrong"),
    [
        ("orders, users", "ordres", True),
        ("orders, users", "orders", False),
        ("orders, users", "ord.*", False),
        ("orders, users", "pay.*", True),
        ("orders.*, users", "ordres", False),
        ("orders, users", "orders, usres", True),
        ("orders, users", "orders, pay.*", False),
    ],
)
def test_a_transform_that_matches_no_topic_is_wrong_at_its_line(topics: str, of_transform: str, is_wrong: bool) -> None:
    """Only where the flow names its topics: what patterns match is not known before the source is asked."""
    text = f"{BASE}topics = {topics}\n{MASKED}ferry.transform.masked.topics = {of_transform}\n"
    errors = [one for one in examine(text, "f").problems if one.severity is Severity.ERROR]
    assert [(one.key, one.line) for one in errors] == ([("ferry.transform.masked.topics", 8)] if is_wrong else [])


def test_a_transform_that_one_of_the_flows_needs_is_right() -> None:
    text = BASE + "b->a.enabled = true\na->b.topics = orders\nb->a.topics = users\n" + MASKED
    assert not examine(text + "ferry.transform.masked.topics = users\n", "f").problems


def test_a_transform_that_a_flow_that_is_not_enabled_may_need_is_no_error() -> None:
    text = BASE + "b->a.enabled = false\na->b.topics = orders\nb->a.topics = users\n" + MASKED
    assert not [
        one
        for one in examine(text + "ferry.transform.masked.topics = users\n", "f").problems
        if one.severity is Severity.ERROR
    ]


def test_a_transform_of_a_topic_that_is_excluded_is_wrong() -> None:
    text = f"{BASE}topics = orders, users\ntopics.exclude = users\n{MASKED}ferry.transform.masked.topics = users\n"
    assert [one.key for one in examine(text, "f").problems] == ["ferry.transform.masked.topics"]
