"""Spark as the oracle of what is told of SQL without it: what is called wrong it refuses, what is sound it takes."""

from __future__ import annotations

import pytest

from ferry.config.flow.record_sql import condition_slip, query_slip
from ferry.config.flow.record_text import spark_functions
from tests.pure.config.record_texts import SOUND, WRONG
from tests.spark.notebook import NO_RECORDS, Failed, Notebook
from tests.tiers import share


@pytest.mark.parametrize("sql", SOUND)
def test_what_has_no_slip_spark_takes(book: Notebook, sql: str) -> None:
    assert book.read(NO_RECORDS, {}, sql=sql).rows == []


@pytest.mark.parametrize("sql", [sql for sql, _ in WRONG])
def test_what_is_called_wrong_is_refused_with_spark(book: Notebook, sql: str) -> None:
    with pytest.raises(Failed, match=r"transform|understood"):
        book.read(NO_RECORDS, {}, sql=sql)


def test_a_part_of_a_statement_with_a_semicolon_is_refused_with_spark(book: Notebook) -> None:
    assert book.read(NO_RECORDS, {}, "offset > 1").rows == []
    assert condition_slip("offset > 1;", columns_known=True) is not None
    with pytest.raises(Failed, match="PARSE_SYNTAX_ERROR"):
        book.read(NO_RECORDS, {}, "offset > 1;")


def test_the_list_of_functions_is_that_of_spark(book: Notebook) -> None:
    assert set(book.functions()) == spark_functions(), "run python tools/spark_functions.py"


def test_of_sparks_own_examples_none_is_refused_that_spark_takes(book: Notebook) -> None:
    examples = book.examples()
    assert len(examples) > 400
    asked = []
    for example in examples:
        sql = f"SELECT *, {example} AS example FROM records"
        slip = query_slip(sql)
        assert "Spark does not have" not in str(slip)
        if slip is not None and slip.is_sure:
            asked.append(sql)
    assert any("rand()" in sql for sql in asked)
    for sql in share(asked, 0, 3):
        with pytest.raises(Failed):
            book.read(NO_RECORDS, {}, sql=sql)
