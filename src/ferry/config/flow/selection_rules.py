"""What a selection of records may not have, as half sentences about the text (ADR 39).

The rules are checked twice: for a text where a file is read (`ferry.config.flow.record_sql`), and for Spark's analysed
plan before anything is copied (`ferry.features.records.rules.selection`). The sentences are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KEPT: Mapping[str, str] = {
    "partition": "int",
    "offset": "bigint",
    "timestamp": "bigint",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Columns that a selection must have, with Spark's names of their types."""

UNCHANGED = ("partition", "offset")
"""Columns that must be the record's own: they are its place of origin."""

MOMENTARY = frozenset(
    (
        "current_catalog", "current_database", "current_date", "current_path", "current_schema", "current_time",
        "current_timestamp", "current_timezone", "current_user", "input_file_block_length", "input_file_block_start",
        "input_file_name", "localtimestamp", "now", "session_user", "user", "version",
    )
)  # fmt: skip
"""Functions that Spark calls deterministic, because they are so within one query. The next attempt is another query."""

_MOMENT = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


def is_momentary(text: str) -> bool:
    """Return whether Spark reads a text as a time of the moment in which it plans: 'now', 'today', also with a zone."""
    return _MOMENT.match(text) is not None


def not_of_one_record(what: str) -> str:
    """Return the sentence about a part of SQL by which a row is not made from one record."""
    return f"has {what}: each row must be made from one record, by SELECT, FROM records and WHERE alone"


def not_the_same(function: str) -> str:
    """Return the sentence about a call of a function that differs each time."""
    return (
        f"calls {function}(), which is not the same each time: a retry would write other records than the attempt "
        "before it; use the record's timestamp, partition and offset instead, or a constant"
    )


def of_the_moment(text: str) -> str:
    """Return the sentence about a time of the moment that is written as text."""
    return (
        f"has the time '{text}', which is not the same each time: a retry would write other records than the attempt "
        "before it; use the record's timestamp instead, or a constant"
    )


def takes_share() -> str:
    """Return the sentence about TABLESAMPLE."""
    return (
        "has TABLESAMPLE, which does not take the same records each time: a retry would write other records than the "
        "attempt before it; use ferry.transform.NAME.sample = 10% instead"
    )


def star_with(word: str) -> str:
    """Return the sentence about a star and a word after it that Spark does not have."""
    return f"has * {word} (...), which Spark does not have: write * EXCEPT (key), and what key becomes AS key"


def drops(column: str) -> str:
    """Return the sentence about a query without a column that a record needs."""
    return f"drops the column {column}: select it too, as by SELECT * EXCEPT (...)"


def changes(column: str) -> str:
    """Return the sentence about a query that gives a record another place."""
    return f"changes the column {column}, which says where a record came from: leave it unchanged"


def reads(table: str) -> str:
    """Return the sentence about a query that reads another table."""
    return f"reads {table}: FROM records is all there is"
