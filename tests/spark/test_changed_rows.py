"""What one process hands its slot where steps break off, or batches are damaged: all before, and all of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.steps import Change, HashKey, Json, Provenance, Sample, Step
from ferry.config.flow.transforms import Poison
from ferry.features.records.acts.cutoffs import Cutoff, OnFailure
from ferry.features.records.acts.reading import Noted, ReadWaits
from ferry.features.records.acts.rows import COLUMNS
from ferry.features.records.acts.source_logs import EpochNotes
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.rules.filters import EVERYTHING
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark import row_tasks
from ferry.features.records.spark.counters import KEPT, READ
from ferry.features.records.spark.row_tasks import Alone, changed_rows
from ferry.features.records.spark.rows import rows_of
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.steps import ArrowSteps
from ferry.kafka.fetch.epoch_check import Mark
from ferry.kafka.fetch.fetch_buffer import ReadFailure
from ferry.model import Codec, RefusalKind, TopicPartition
from ferry.wire.batch import Batch, batches
from tests.spark.test_record_rows import built

ARROW = to_arrow_schema(SCHEMA, timezone="UTC")
RULE = PoisonRule(transform="masked", poison=Poison.FAIL, letters=DeadLetters(topic="dead"))
MASK = Json(paths=("$.card",), change=Change.REDACT)
STEPS: tuple[Step, ...] = (Provenance(cluster="a"), HashKey())
VALUES = st.lists(st.sampled_from([b"fine", b"fine", b"fine", b"bad"]), min_size=1, max_size=12)


class Breaking:
    """The steps, which break off at a value."""

    def __init__(self) -> None:
        self._change = ArrowSteps(STEPS, {"t": "a.t"}, b"s" * 16)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if b"bad" in batch.column("value").to_pylist():
            raise KeyError("a secret")
        return self._change(batch)


@pytest.mark.parametrize("unread", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(every=st.lists(VALUES, min_size=1, max_size=3))
def test_rows_end_where_a_step_breaks_off_and_those_of_others_go_on(
    monkeypatch: pytest.MonkeyPatch, unread: bool, every: list[list[bytes]]
) -> None:
    pieces = [ReadRange(TopicPartition("t", number), 0, 100) for number in range(len(every) + 1)]

    def read(_: Any, told: OnFailure, noted: Noted, __: Any) -> Iterator[tuple[ReadRange, Batch]]:
        for piece, values in zip(pieces[1:], every, strict=True):
            if unread and piece is pieces[1]:
                told(pieces[0].place, ReadFailure(kind=RefusalKind.NO_LEADER, message="none leads", offset=0))
            (batch,) = batches(built([(0, b"k", value, []) for value in values], Codec.NONE))
            noted(piece.place, Mark(batch.leader_epoch, batch.next_offset))
            yield piece, batch

    monkeypatch.setattr(row_tasks, "read_batches", read)
    one = Alone(
        spec=cast("Any", None),
        read=cast("Any", None),
        targets={piece.place: TopicPartition("a.t", piece.place.partition) for piece in pieces},
        changes={"t": cast("ArrowSteps", Breaking())},
        rules={"t": RULE},
    )
    cutoffs: dict[TopicPartition, Cutoff] = {}
    counts: Counter[tuple[str, str]] = Counter()
    got: dict[int, list[int]] = {}
    for batch in changed_rows(one, ARROW, cutoffs, counts, EpochNotes(), ReadWaits()):
        for row in batch.to_pylist():
            got.setdefault(row["partition"], []).append(row["offset"])
            known = [place.partition for place in cutoffs]
            assert all(number <= row["partition"] or not got.get(number) for number in known), "told too late"
    wanted = {
        number: values.index(b"bad") if b"bad" in values else len(values) for number, values in enumerate(every, 1)
    }
    assert got == {number: list(range(end)) for number, end in wanted.items() if end}
    bad = {number for number, values in enumerate(every, 1) if b"bad" in values}
    ends = {place.partition: (one.offset, one.refusal.kind) for place, one in cutoffs.items()}
    assert ends == {number: (wanted[number], RefusalKind.TRANSFORM) for number in bad} | (
        {0: (0, RefusalKind.NO_LEADER)} if unread else {}
    )
    for number in bad:
        message = cutoffs[TopicPartition("t", number)].refusal.message
        assert f"the record at offset {wanted[number]} of t-{number}: KeyError in a step" in message
        assert "a secret" not in message
    assert counts[READ, "t"] == counts[KEPT, "t"] == sum(wanted.values())


def test_a_batch_of_which_nothing_is_kept_comes_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the slot that takes the rows can look at its time."""
    piece = ReadRange(TopicPartition("t", 0), 0, 100)
    (batch,) = batches(built([(0, b"k", b"v", [])] * 3, Codec.NONE))
    monkeypatch.setattr(row_tasks, "read_batches", lambda *_: iter([(piece, batch)]))
    one = Alone(
        spec=cast("Any", None),
        read=cast("Any", None),
        targets={piece.place: TopicPartition("a.t", 0)},
        changes={"t": ArrowSteps((Sample(parts_per_million=0),), {"t": "a.t"}, b"s" * 16)},
        rules={"t": RULE},
    )
    counts: Counter[tuple[str, str]] = Counter()
    (got,) = changed_rows(one, ARROW, {}, counts, EpochNotes(), ReadWaits())
    assert (got.num_rows, got.schema.names, counts[READ, "t"], counts[KEPT, "t"]) == (0, list(COLUMNS), 3, 0)


KEYS = st.none() | st.binary(max_size=3)


@given(
    rows=st.lists(st.tuples(KEYS, st.sampled_from([None, b"", b'{"card": 1}', b"no JSON", b"[1]"])), max_size=8),
    at=st.integers(0, 8),
)
def test_parts_of_a_batch_are_changed_as_the_whole_is(rows: list[tuple[bytes | None, bytes | None]], at: int) -> None:
    change = ArrowSteps((Sample(parts_per_million=500_000), *STEPS, MASK), {"t": "a.t"}, b"s" * 16)
    if not rows:
        return
    (batch,) = batches(built([(7, key, value, [("h", b"x")]) for key, value in rows], Codec.NONE))
    (whole,) = rows_of([(ReadRange(TopicPartition("t", 0), 0, 100), batch)], EVERYTHING, ARROW)
    parts = [change(whole.slice(0, at)), change(whole.slice(at))]
    assert pa.concat_batches(parts).to_pylist() == change(whole).to_pylist()
