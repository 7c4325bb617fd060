"""`ferry plan --sample` where transforms break: one says which record it is, and the others are shown."""

from __future__ import annotations

from typing import Any

from tests.program import Answer
from tests.spark.notebook import Notebook

FILE = """clusters = a, b
a.bootstrap.servers = h:1
b.bootstrap.servers = h:2
a->b.enabled = true
ferry.transforms = broken, number, whole
ferry.transform.broken.topics = clicks
ferry.transform.broken.where = nosuch(key)
ferry.transform.number.topics = orders
ferry.transform.number.where = CAST(CAST(value AS STRING) AS INT) > 0
ferry.transform.whole.topics = payments
ferry.transform.whole.where = value IS NOT NULL
"""
SECRET = b"no-4711"


def row(topic: str, partition: int, offset: int, value: bytes) -> tuple[Any, ...]:
    return (topic, partition, offset, 1, 0, b"k", value, [])


ROWS = [
    row("clicks", 0, 0, b"1"),
    *(row("orders", 0, offset, b"%d" % offset) for offset in range(5)),
    row("orders", 1, 70, SECRET),
    row("orders", 1, 71, b"71"),
    row("payments", 0, 0, b"1"),
]
NUMBER = "ferry: ferry.transform.number ", " offset 70 of orders-1 (CAST_INVALID_INPUT in CAST("
BROKEN = "ferry.transform.broken.where: ", " not understood, line 1, column 1: "


def test_each_transform_is_shown_by_itself_and_the_record_that_breaks_one_is_named(book: Notebook) -> None:
    done = book.sampled(FILE, ROWS, values=False, as_json=True)
    assert done["code"] == 2
    broken, number, whole = Answer(**done).json("plan-sample")["samples"]
    assert broken["error"].startswith(BROKEN[0])
    assert BROKEN[1] in broken["error"]
    assert (broken["records"], broken["digest"]) == ([], None)
    assert (number["error"], whole["error"]) == (None, None)
    assert [one["what"] for one in number["records"]] == ["left out", *["same"] * 4, "broken", "same"]
    assert [one["what"] for one in whole["records"]] == ["same"]
    first, second = sorted(done["err"].splitlines())
    assert first.startswith(f"ferry: {BROKEN[0]}")
    assert BROKEN[1] in first
    assert second.startswith(NUMBER[0])
    assert NUMBER[1] in second
    assert SECRET.decode() not in done["out"] + done["err"]


def test_of_many_records_that_break_it_the_first_is_named_and_the_others_are_counted(book: Notebook) -> None:
    rows = [row("orders", 0, offset, b"x%d" % offset) for offset in range(16)] + [row("payments", 0, 0, b"1")]
    done = book.sampled(FILE, rows, values=True, as_json=False)
    assert done["code"] == 2
    assert "payments, the last 1 record: 1 " in done["out"]
    assert "orders, the last 16 records: 16 " in done["out"]
    assert " one of the 8 records " in " ".join(done["out"].split())
    second = max(done["err"].splitlines())
    assert " at offset 0 of orders-0 (" in second
    assert "x0" in second
    assert "), and 15 more records " in second


def test_the_only_one_that_cannot_be_carried_out_ends_it_with_its_sentence(book: Notebook) -> None:
    file = FILE.replace("broken, number, whole", "broken").split("ferry.transform.number")[0]
    done = book.sampled(file, [row("clicks", 0, 0, b"1")], values=False, as_json=True)
    assert (done["code"], done["out"]) == (2, "")
    assert done["err"].startswith(BROKEN[0])
    assert BROKEN[1] in done["err"]
