"""Spark as the oracle of what is told of SQL without it: what is called wrong it refuses, what is sound it takes."""

from __future__ import annotations

import pytest

from ferry.config.flow.record_sql import query_slip
from tests.config.record_texts import SOUND, WRONG
from tests.spark.notebook import NO_RECORDS, Failed, Notebook


@pytest.mark.parametrize("sql", SOUND)
def test_what_has_no_slip_spark_takes(book: Notebook, sql: str) -> None:
    assert book.read(NO_RECORDS, {}, sql=sql).rows == []


@pytest.mark.parametrize("sql", [sql for sql, _ in WRONG])
def test_what_is_called_wrong_is_refused_with_spark(book: Notebook, sql: str) -> None:
    with pytest.raises(Failed, match=r"the transform|SQL is not understood"):
        book.read(NO_RECORDS, {}, sql=sql)


def test_of_sparks_own_examples_none_is_refused_that_spark_takes(book: Notebook) -> None:
    examples = book.examples()
    assert len(examples) > 400
    asked = []
    for example in examples:
        sql = f"SELECT *, {example} AS example FROM records"
        slip = query_slip(sql)
        if slip is not None and slip.is_sure:
            asked.append(sql)
            with pytest.raises(Failed):
                book.read(NO_RECORDS, {}, sql=sql)
    assert any("rand()" in sql for sql in asked)
