"""What is told of a transform's SQL without Spark; tests/spark/test_record_sql.py asks Spark of the same texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.record_sql import condition_slip, expression_slip, query_slip
from ferry.config.flow.record_tree import RECORD_COLUMNS
from ferry.config.reading.examine import examine
from ferry.config.text.problem import Severity
from ferry.features.records.spark.schema import SCHEMA
from tests.golden import Golden
from tests.pure.config.record_texts import DOUBTFUL, SOUND, WRONG

BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
OURS = BASE + "ferry.transforms = one\nferry.transform.one.topics = x\nferry.transform.one."


def test_columns_are_those_of_spark_and_of_ferry() -> None:
    assert (*SCHEMA.fieldNames(), "target", "poison") == RECORD_COLUMNS


@pytest.mark.parametrize("sql", SOUND)
def test_a_selection_has_no_slip(sql: str) -> None:
    assert query_slip(sql) is None


@pytest.mark.parametrize(("sql", "words"), WRONG)
def test_what_is_certain_is_told_with_its_place(sql: str, words: str) -> None:
    found = query_slip(sql)
    assert found is not None
    assert found.is_sure
    assert words in str(found)


@pytest.mark.parametrize("sql", DOUBTFUL)
def test_what_only_spark_knows_is_no_error(sql: str) -> None:
    found = query_slip(sql)
    assert found is None or not found.is_sure


@pytest.mark.parametrize(
    "sql",
    [
        "uppr(key) = 'X'",
        "topic = 'x' AND (iif (TRUE, 1, 2) = 1)",
        "zzzqqq(1)",
    ],
)
def test_a_function_that_spark_does_not_have_is_a_doubt(sql: str, golden: Golden) -> None:
    found = condition_slip(sql, columns_known=True)
    assert found is not None
    assert not found.is_sure
    golden(str(found))


@pytest.mark.parametrize(
    "sql", ["mine.uppr(key) = 'X'", "`uppr`(key) = 'X'", "topic = 'uppr(key)' -- uppr(key)", "upper (key)"]
)
def test_what_may_be_a_catalogues_function_is_no_doubt(sql: str) -> None:
    assert condition_slip(sql, columns_known=True) is None


def test_a_part_of_a_statement_has_no_semicolon(golden: Golden) -> None:
    for sql in ("offset > 1;", "offset > 1; DROP TABLE x"):
        found = condition_slip(sql, columns_known=True)
        golden(str(found))
    assert condition_slip("topic = ';' -- ;", columns_known=True) is None


WORDS = (
    "SELECT", "*", "FROM", "records", "WHERE", "value", "(", ")", "'", '"', "`", ",", ".", "=", "AS", "-- x", "/*",
    "*/", "now", "rand", "1", "\\", "'x'", "r'\\'", "x'1F'", "h", "->", "EXCEPT", "CAST", "\n", ";", "LATERAL", "{",
    "[", "''",
)  # fmt: skip


@given(words=st.lists(st.sampled_from(WORDS), max_size=12), mark=st.sampled_from(["", " "]))
def test_whatever_is_written_has_an_answer_within_it(words: list[str], mark: str) -> None:
    sql = mark.join(words)
    for found in (query_slip(sql), condition_slip(sql, columns_known=True), expression_slip(sql, columns_known=True)):
        if found is not None and found.line is not None and found.column is not None:
            lines = sql.split("\n")
            assert 1 <= found.line <= len(lines)
            assert 1 <= found.column <= len(lines[found.line - 1]) + 1


def test_what_is_nested_too_deeply_is_sparks_to_say() -> None:
    found = query_slip(f"SELECT {'(' * 5000}1{')' * 5000} FROM records")
    assert found is None or not found.is_sure


def test_places_are_those_in_the_writers_text(golden: Golden) -> None:
    for sql, place in [("valu = '1'", (1, 1)), ("offset > 1 AND\n  rand() < 1", (2, 3)), ("offset > (1", (1, 10))]:
        found = condition_slip(sql, columns_known=True)
        assert found is not None
        assert (found.line, found.column) == place
    found = expression_slip("concat(topik, '-x')", columns_known=True)
    assert found is not None
    golden(str(found))
    for sql in ("offset > 1 -- more", "key IS NULL", "exists(headers, h -> h.key = 'x' AND h.value = value)"):
        assert condition_slip(sql, columns_known=True) is None
    assert condition_slip("mine > 1", columns_known=False) is None


def test_a_file_says_it_by_its_line(golden: Golden) -> None:
    (problem,) = examine(OURS + "where = valu IS NOT NULL\n", "f").problems
    golden(str(problem), "an error")
    assert problem.severity is Severity.ERROR
    (problem,) = examine(OURS + f"sql = {DOUBTFUL[0]}\n", "f").problems
    assert problem.severity is Severity.WARNING
    golden(str(problem), "a doubt")
    more = "sql = SELECT *, offset AS mine FROM records\nferry.transform.one.where = mine > 1\n"
    assert examine(OURS + more, "f").problems == ()


def test_what_a_reference_leads_to_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", "hunter2")
    (problem,) = examine(OURS + "where = ${env:PLANTED} = 'x'\n", "f").problems
    assert "hunter2" not in str(problem)
