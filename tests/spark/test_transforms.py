"""Transforms in a real Spark: against a plain model in Python, and a sentence where one is not understood."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.config.flow.topic_sql import topic_by_sql
from ferry.features.records.rules.json_cast import cast
from ferry.features.records.rules.json_edit import NotJson, edited, tree_of
from tests.kafka.decide.test_json_edit import kafkas
from tests.spark.notebook import ROOT, Failed, Notebook, changed_alone

BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
SALT = "0123456789abcdef"
OURS = "ferry.transforms = one\nferry.transform.one.topics = orders, clicks\n"
CONNECT = "org.apache.kafka.connect.transforms."
FEW = settings(max_examples=6)
"""Each example is a job of Spark: many records each, then, and few examples."""

JSON = st.fixed_dictionaries(
    {},
    optional={
        "card": st.text(max_size=5) | st.integers(0, 9),
        "mail": st.text(max_size=5) | st.none(),
        "n": st.floats(0, 9),
    },
)  # fmt: skip
VALUES = st.none() | JSON.map(lambda one: json.dumps(one).encode()) | st.sampled_from([b"", b"no", b"\xff", b"[1]"])
RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["orders", "clicks"]),
        st.integers(0, 3),
        st.integers(0, 2**62),
        st.integers(0, 4_000_000_000_000),
        st.just(0),
        st.none() | st.binary(max_size=4) | st.sampled_from([b"12", b"true", b'"x"', b"{}"]),
        VALUES,
        st.lists(st.tuples(st.sampled_from(["x", "y"]), st.none() | st.binary(max_size=3)), max_size=3),
    ),
    min_size=1, max_size=60, unique_by=lambda row: row[:3],
)  # fmt: skip

Row = tuple[Any, ...]


def ours(*lines: str) -> str:
    return BASE + OURS + "".join(f"ferry.transform.one.{line}\n" for line in lines)


def connect(text: str) -> str:
    return BASE + text.replace("@", CONNECT)


def by_place(rows: list[dict[str, Any]]) -> dict[Row, tuple[Any, ...]]:
    names = ("target", "timestamp", "key", "value", "headers", "poison")
    found = {(row["topic"], row["partition"], row["offset"]): tuple(row[name] for name in names) for row in rows}
    assert len(found) == len(rows)
    return found


def mac(clear: bytes) -> str:
    return hmac.new(SALT.encode(), clear, hashlib.sha256).hexdigest()


def parsed(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


@FEW
@given(records=RECORDS)
def test_filters_masks_and_hashes_are_those_of_the_model(book: Notebook, records: list[Row]) -> None:
    file = ours("where = partition <> 2", "redact = $.card", "hash = $.mail", "hash.key = true", f"salt = {SALT}",
                "provenance = true", "poison = skip")  # fmt: skip
    found = by_place(book.transformed(file, records))
    assert found.keys() == {row[:3] for row in records if row[1] != 2}
    for topic, partition, offset, timestamp, _, key, value, headers in records:
        if partition == 2:
            continue
        target, now_timestamp, now_key, now_value, now_headers, poison = found[topic, partition, offset]
        assert (target, now_timestamp) == (f"a.{topic}", timestamp)
        if value in (b"", b"no", b"\xff"):
            assert poison.startswith("its value ")
            assert ": it is no" in poison
            assert (now_key, now_value, now_headers) == (key, value, headers)
            continue
        assert poison is None
        assert now_key == (None if key is None else mac(key).encode())
        source = [("topic", topic), ("partition", str(partition)), ("offset", str(offset))]
        told = [("cluster", "a"), *source]
        assert now_headers == headers + [(f"ferry.source.{name}", text.encode()) for name, text in told]
        was, now = parsed(value), parsed(now_value)
        if isinstance(was, dict):
            if "card" in was:
                was["card"] = "" if isinstance(was["card"], str) else 0
            if was.get("mail") is not None:
                was["mail"] = mac(was["mail"].encode())
            assert now == was
        else:
            assert now_value == value


def test_sql_means_what_it_means_by_sparks_defaults_whatever_the_cluster_has(book: Notebook) -> None:
    """Else the same transform, by its digest, would make something else of a record."""
    parts = (
        "to_json(named_struct('a', CAST(NULL AS STRING)))",
        "'\\\\t'",
        "`TOPIC`",
        """from_json('{"a": 1, "b": "x"}', 'a INT, b INT').a""",
        "length(base64(CAST(repeat('x', 90) AS BINARY)))",
    )
    sql = f"CAST(concat({', '.join(parts)}) AS BINARY)"
    file = ours(f"sql = SELECT * EXCEPT (value), {sql} AS value FROM records", "hash.key = true", f"salt = {SALT}")
    settings = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.chunkBase64String.enabled": "false",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.pyspark.binaryAsBytes": "false",
        "spark.sql.json.enablePartialResults": "false",
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.session.timeZone": "Asia/Tokyo",
    }
    (row,) = book.transformed(file, [("orders", 0, 1, 2, 0, b"k", b"v", [])], settings)
    assert (row["key"], row["value"]) == (mac(b"k").encode(), b"{}\torders1122")


def cast_by_model(value: bytes | None, *casts: tuple[tuple[str, ...], str]) -> bytes | None:
    for path, kind in casts:
        value = None if value is None else edited(value, tree_of([path]), cast(kind))
    return value


@given(records=RECORDS)
def test_casts_of_values_and_keys_are_those_of_the_model(records: list[Row]) -> None:
    found = by_place(
        changed_alone(ours("cast = $.n:string, $.card:int8", "cast.key = $:string", "poison = skip"), records)
    )
    for topic, partition, offset, timestamp, _, key, value, headers in records:
        wanted: tuple[bytes | None, bytes | None] = (key, value)
        why = None
        try:
            changed = cast_by_model(value, (("n",), "string"), (("card",), "int8"))
        except NotJson as error:
            why = f"its value cannot be changed: {error}"
        else:
            try:
                wanted = (cast_by_model(key, ((), "string")), changed)
            except NotJson as error:
                why = f"its key cannot be changed: {error}"
        assert found[topic, partition, offset] == (f"a.{topic}", timestamp, *wanted, headers, why)


@given(records=RECORDS)
def test_a_sample_is_of_whole_keys_and_the_same_each_time(records: list[Row]) -> None:
    found = by_place(changed_alone(ours("sample = 40%"), records))
    for topic, partition, offset, timestamp, _, key, value, headers in records:
        clear = key if key is not None else f"{topic}:{partition}:{offset}".encode()
        is_kept = int(hashlib.sha256(clear).hexdigest()[:12], 16) % 1_000_000 < 400_000
        assert ((topic, partition, offset) in found) == is_kept
        if is_kept:
            assert found[topic, partition, offset] == (f"a.{topic}", timestamp, key, value, headers, None)


@given(records=RECORDS)
def test_connects_chain_does_what_the_model_does(records: list[Row]) -> None:
    file = connect(
        "transforms = gone, add, less, move, day\npredicates = tombstone, tagged, clicks\n"
        "predicates.tombstone.type = @predicates.RecordIsTombstone\n"
        "predicates.tagged.type = @predicates.HasHeaderKey\npredicates.tagged.name = y\n"
        "predicates.clicks.type = @predicates.TopicNameMatches\npredicates.clicks.pattern = a.clicks\n"
        "transforms.gone.type = @Filter\ntransforms.gone.predicate = tombstone\n"
        "transforms.add.type = @InsertHeader\ntransforms.add.header = origin\ntransforms.add.value.literal = west\n"
        "transforms.add.predicate = clicks\ntransforms.add.negate = true\n"
        "transforms.less.type = @DropHeaders\ntransforms.less.headers = x, z\ntransforms.less.predicate = tagged\n"
        "transforms.move.type = @RegexRouter\ntransforms.move.regex = a\\\\.(.*)\n"
        "transforms.move.replacement = moved-$1\n"
        "transforms.day.type = @TimestampRouter\ntransforms.day.predicate = tagged\n"
        "transforms.day.topic.format = ${timestamp}_${topic}\ntransforms.day.timestamp.format = yyyyMMdd-HHmm\n"
    )
    found = by_place(changed_alone(file, records))
    assert found.keys() == {row[:3] for row in records if row[6] is not None}
    for topic, partition, offset, timestamp, _, key, value, headers in records:
        if value is None:
            continue
        tagged = any(name == "y" for name, _ in headers)
        wanted = headers + ([("origin", b"west")] if topic == "orders" else [])
        wanted = [pair for pair in wanted if not (tagged and pair[0] == "x")]
        target, *_ = same = found[topic, partition, offset]
        assert same[1:] == (timestamp, key, value, wanted, None)
        assert target == f"{stamp(timestamp)}_moved-{topic}" if tagged else target == f"moved-{topic}"


@pytest.mark.parametrize(
    ("topics", "times"),
    [
        ("${topic}-${timestamp}", "yyyyMMdd"),
        ("${timestamp}_${topic}", "yy.MM.dd'T'HH.mm.ss.SSS"),
        ("x.${timestamp}.${topic}.${timestamp}", "SSS-ss-yyyy"),
    ],
)
def test_names_by_time_are_those_of_kafkas_class(topics: str, times: str) -> None:
    file = connect(
        "transforms = day\ntransforms.day.type = @TimestampRouter\n"
        f"transforms.day.topic.format = {topics}\ntransforms.day.timestamp.format = {times}\n"
    )
    moments = [0, 999, 59_999, 951_782_399_123, 1_709_164_800_000, 4_102_444_799_999, 253_402_300_799_999]
    rows: list[Row] = [("orders", 0, at, moment, 0, b"k", b"v", []) for at, moment in enumerate(moments)]
    found = by_place(changed_alone(file, rows))
    for at, moment in enumerate(moments):
        wanted = kafkas("TimestampRouter", b"{}", "a.orders", moment, topic_format=topics, timestamp_format=times)
        assert wanted is not None
        assert found["orders", 0, at][::5] == (wanted[0], None)


def test_a_router_sees_the_name_that_one_by_time_made() -> None:
    file = connect(
        "transforms = day, move\ntransforms.day.type = @TimestampRouter\ntransforms.day.timestamp.format = yyyy\n"
        "transforms.move.type = @RegexRouter\ntransforms.move.regex = a\\\\.(.*)-2100\n"
        "transforms.move.replacement = last-$1\n"
    )
    moments = (4_102_444_799_999, 4_102_444_800_000, 2**62)
    rows: list[Row] = [("orders", 0, at, moment, 0, b"k", b"v", []) for at, moment in enumerate(moments)]
    found = by_place(changed_alone(file, rows))
    assert [found["orders", 0, at][0] for at in range(3)] == ["a.orders-2099", "last-orders", "a.orders"]
    assert [found["orders", 0, at][5] for at in range(2)] == [None, None]
    assert " 1 to 9999" in found["orders", 0, 2][5]


def stamp(timestamp_ms: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)).strftime("%Y%m%d-%H%M")


ONE: list[Row] = [("orders", 0, 5, 7, 0, b"k", b"value", [])]


def test_sql_functions_and_targets(book: Notebook) -> None:
    shout = "sql = SELECT * EXCEPT (value), CAST(upper(CAST(value AS STRING)) AS BINARY) AS value FROM records"
    assert by_place(book.transformed(ours(shout), ONE))["orders", 0, 5][3] == b"VALUE"
    least = "sql = SELECT topic, partition, offset, timestamp, key, value, headers FROM records"
    assert by_place(book.transformed(ours(least), ONE))["orders", 0, 5] == ("a.orders", 7, b"k", b"value", [], None)
    told = "sql = SELECT * EXCEPT (poison), IF(key = 'k', 'not wanted', NULL) AS poison FROM records"
    assert by_place(book.transformed(ours(told), ONE))["orders", 0, 5][5] == "not wanted"
    function = "function = tests.spark.functions_of_flows:small"
    assert by_place(book.transformed(ours(function), ONE))["orders", 0, 5][3] == b"VALUE"
    target = "target = concat(target, '-', partition)"
    assert by_place(book.transformed(ours(target), ONE))["orders", 0, 5][0] == "a.orders-0"
    named, poison = by_place(book.transformed(ours("target = '/'"), ONE))["orders", 0, 5][::5]
    assert (named, poison.startswith("its target ")) == ("a.orders", True)


def test_the_documents_enriched_records_have_what_its_table_says(book: Notebook) -> None:
    shown = (ROOT / "docs/transforms.md").read_text().partition("## Enriched from a table")[2]
    block = shown.partition("```python\n")[2].partition("```")[0]
    assert block == (ROOT / "tests/spark/functions_of_documents.py").read_text()
    values: list[bytes | None] = [b'{"prefix": "49"}', b'{"prefix": "1"}', b"{}", None, b"no JSON"]
    rows: list[Row] = [("calls", 0, at, 7, 0, b"k", value, [("x", b"y")]) for at, value in enumerate(values)]
    file = BASE + "ferry.transforms = known\n" + shown.partition("```properties\n")[2].partition("```")[0]
    file = file.replace("company.flows", "tests.spark.functions_of_documents")
    found = by_place(book.transformed(file, rows))
    countries = [b"DE", None, None, None, None]
    wanted = zip(values, countries, strict=True)
    assert [found["calls", 0, at][3:] for at in range(len(values))] == [
        (value, [("x", b"y"), ("country", country)], None) for value, country in wanted
    ]


NAMINGS = (
    "concat('eu.', topic)", "target || '-x'", "concat(topic, '-', target, r'\\d')", "TOPIC", "`target`",
    "records.topic", "('a' || topic) -- so", "regexp_replace(target, '^a[.]', '')",
    "regexp_replace(topic, '(.)(s?)$', '$2-$1')", "regexp_replace(topic, 'e|r', '')",
    "regexp_replace(concat(topic, '.x'), '([a-z]+)[.](.)', '$2')",
)  # fmt: skip


def test_names_that_a_plan_works_out_are_those_of_spark(book: Notebook) -> None:
    every = ", ".join(f"coalesce(CAST(({one}\n) AS STRING), '')" for one in NAMINGS)
    sql = f"sql = SELECT * EXCEPT (value), CAST(to_json(array({every})) AS BINARY) AS value FROM records"
    records: list[Row] = [(topic, 0, 5, 7, 0, None, None, []) for topic in ("orders", "clicks")]
    found = by_place(book.transformed(ours(sql.replace("\\", "\\\\").replace("\n", "\\n")), records))
    for topic in ("orders", "clicks"):
        wanted = dict(zip(NAMINGS, json.loads(found[topic, 0, 5][3]), strict=True))
        assert {one: topic_by_sql(one, topic, f"a.{topic}") for one in NAMINGS} == wanted


NO_SENTENCE = "[INTERNAL_ERROR] Cannot find main error class 'COLUMN_IS_NOT_VARIANT_TYPE'"
"""What Spark 4.2 says of `value:x`, which is for variants: it looks for a sentence that it does not have."""
BREAKS_OFF = f"the transform's SQL makes Spark itself break off: {NO_SENTENCE}; correct it, or say it in other words"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sql = SELECT *, value:x AS y FROM records", f"sql: {BREAKS_OFF}"),
        ("where = value:x = 1", f"where: {BREAKS_OFF}"),
        ("target = value:x", f"target: {BREAKS_OFF}"),
        (
            "function = tests.spark.functions:internal",
            f"function: internal raises Py4JJavaError: {NO_SENTENCE}; correct it",
        ),
        ("function = tests.spark.functions:unnamed", "function: unnamed raises AnalysisException: "),
    ],
)
def test_what_makes_spark_break_off_is_one_sentence_without_javas_stack(book: Notebook, line: str, told: str) -> None:
    with pytest.raises(Failed) as failed:
        book.transformed(ours(line), ONE)
    said = str(failed.value)
    assert said.startswith(f"ferry.transform.one.{told}")
    assert said.endswith(("; correct it", " in other words"))
    assert "\n" not in said
    assert "SQLSTATE" not in said
    assert " at org." not in said


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        (["where = nosuch(1)"], ["ferry.transform.one.where: ", "not understood, line 1, column 1: "]),
        (["where = partition WHER 1"], ["ferry.transform.one.where: ", "SQL is not understood"]),
        (["where = value"], ["ferry.transform.one.where: ", "SQL is not understood"]),
        (["target = `rand`()"], ["ferry.transform.one.target: ", " line 1, column 1, calls rand(), "]),
        (
            ["sql = SELECT * FROM records WHERE offset IN (SELECT offset FROM records)"],
            ["ferry.transform.one.sql: ", " line 1, column 36, has a subquery"],
        ),
        (
            ["sql = SELECT * EXCEPT (key) FROM (SELECT * FROM records)"],
            ["ferry.transform.one.sql: ", " drops the column key: "],
        ),
        (
            ["sql = SELECT * EXCEPT (timestamp) FROM (SELECT * FROM records)"],
            ["ferry.transform.one.sql: ", " drops the column timestamp: "],
        ),
        (
            ["sql = SELECT * EXCEPT (topic), 'x' AS topic FROM (SELECT * FROM records)"],
            ["ferry.transform.one.sql: ", " changes the column topic, "],
        ),
        (
            ["sql = SELECT * EXCEPT (target), 3 AS target FROM records"],
            ["ferry.transform.one.sql: ", " the column target int, ", " to be string"],
        ),
        (["function = nowhere.to_be:found"], ["one.function: ", " nowhere.to_be:found cannot be imported"]),
        (["function = tests.spark.functions_of_flows:big"], [" has no big; "]),
        (["function = tests.spark.functions_of_flows:NUMBER"], [":NUMBER is int, "]),
        (["function = tests.spark.functions_of_flows:raises"], ["raises raises KeyError: ", "'a table that is"]),
        (["function = tests.spark.functions:nothing"], ["nothing answers NoneType: "]),
        (["function = tests.spark.functions:drawn"], [" calls rand(), "]),
        (["function = tests.spark.functions:shifted"], [" changes the column offset, "]),
        (["function = tests.spark.functions:heedless"], [" changes spark.sql.caseSensitive "]),
        (["function = tests.spark.functions:elsewhere"], [" changes spark.sql.session.timeZone "]),
    ],
)
def test_what_is_not_understood_is_one_sentence(book: Notebook, lines: list[str], facts: list[str]) -> None:
    with pytest.raises(Failed) as failed:
        book.transformed(ours(*lines), ONE)
    for fact in facts:
        assert fact in str(failed.value)
    assert str(failed.value).startswith("ferry.transform.one.")
    assert "\n" not in str(failed.value)
