"""Headers whose names are no UTF-8, as producers in C can write them: each byte is copied, and nothing stops."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.steps import AddHeader, DropHeaders, HasHeader, Step, When
from ferry.config.flow.transforms import Poison
from ferry.features.records.acts.rows import Rows, rows_of_piece
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.rules.filters import EVERYTHING
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark.rows import rows_of
from ferry.features.records.spark.sample import shown_records
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.steps import ArrowSteps
from ferry.features.verify.spark.compare_rows import COMPARE_COLUMNS, rows_to_compare
from ferry.model import Codec, Compression, TopicPartition
from ferry.run.spark.columns import texts
from ferry.wire.batch import batches
from ferry.wire.content import contents
from ferry.wire.encoding import batch_of_columns
from ferry.wire.headers import parse_headers
from tests.spark.test_record_rows import built

ARROW = to_arrow_schema(SCHEMA, timezone="UTC")


class RawName(str):
    """A header's name of these bytes, for kafka-python's builder: as producers in C make it, UTF-8 or not."""

    __slots__ = ()
    data = b"\xff\xfe name"

    def encode(self, *_: object) -> bytes:
        """Not what the string says."""
        return self.data


RAW = RawName.data
GIVEN: list[list[tuple[str, bytes | None]]] = [
    [(RawName("?"), b"1"), ("x", None), (RawName("?"), None)],
    [],
    [("x", b"2"), ("ü", b"\xff")],
]
STEPS: tuple[Step, ...] = (
    DropHeaders(names=("x",)),
    AddHeader(name="ours", value="1", when=When(test=HasHeader(name="ü"))),
)
WANTED = [[(RAW, b"1"), (RAW, None)], [], [("ü".encode(), b"\xff"), (b"ours", b"1")]]


@pytest.fixture
def read() -> pa.RecordBatch:
    """The records in the columns of the source `ferry`."""
    (batch,) = batches(built([(7, b"k", b"v", headers) for headers in GIVEN], Codec.NONE))
    (found,) = rows_of([(ReadRange(TopicPartition("t", 0), 0, 9), batch)], EVERYTHING, ARROW)
    return found


def test_what_python_changes_alone_is_written_byte_by_byte(read: pa.RecordBatch) -> None:
    rule = PoisonRule(transform="one", poison=Poison.FAIL, letters=DeadLetters(topic="dead"))
    changed = ArrowSteps(STEPS, {"t": "a.t"}, b"")(read)
    rows = Rows([rows_of_piece(rule, changed, TopicPartition("a.t", 0))])
    shown = rows.next()
    assert shown is not None
    span = rows.take(shown.size)
    written = batch_of_columns(span.columns(), Compression(codec=Codec.NONE))
    assert [parse_headers(one.headers) for one in contents(written, 1 << 20)] == WANTED
    # One by one, as dead letters are made.
    assert [span.part(at, at + 1).row().record.headers for at in range(3)] == WANTED


def test_a_copy_is_held_against_them(read: pa.RecordBatch) -> None:
    numbers = pa.array([0, 0, 0], pa.int32())
    rest = [read.column(name) for name in COMPARE_COLUMNS[3:-1]]
    held = pa.RecordBatch.from_arrays(
        [numbers, numbers, numbers, *rest, pa.nulls(3, pa.string())], names=list(COMPARE_COLUMNS)
    )
    found = [parse_headers(row.content.headers) for row in rows_to_compare([held])]
    assert found == [[(RAW, b"1"), (b"x", None), (RAW, None)], [], [(b"x", b"2"), ("ü".encode(), b"\xff")]]


def test_a_sample_shows_them_escaped(read: pa.RecordBatch) -> None:
    first, _, last = shown_records(pa.Table.from_batches([read]))
    assert [pair["key"] for pair in first["headers"]] == ["\\xff\\xfe name", "x", "\\xff\\xfe name"]
    assert [pair["key"] for pair in last["headers"]] == ["x", "ü"]


def test_texts_that_spark_makes_of_other_bytes_are_told_all_the_same() -> None:
    odd = pa.array([b"no \xff", None, "ü".encode()], pa.binary())
    column = pa.Array.from_buffers(pa.string(), 3, odd.buffers(), odd.null_count)
    assert texts(column) == ["no \ufffd", None, "ü"]
    assert texts(column.slice(1)) == [None, "ü"]
