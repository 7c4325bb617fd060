"""What each ready-made step makes of records is pinned to its version: by that verify tells an earlier one's work.

When a test here fails because a step makes something else of a record, on purpose: raise the step's number in
STEP_VERSIONS, and write the new digest down.
"""

from __future__ import annotations

import hashlib
from typing import get_args

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from ferry.config.flow.steps import (
    STEP_VERSIONS,
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
    Step,
    TopicMatches,
    When,
    meaning_of,
)
from ferry.features.records.spark.schema import SCHEMA
from ferry.features.records.spark.steps import ArrowSteps

BY_SPARK = (Keep, Rename)
"""What they mean is SQL's, and so the version of PySpark's."""

NAMES = ("topic", "partition", "offset", "target", "timestamp", "key", "value")
VALUES = (
    None,
    b"",
    b"no JSON",
    b"\xff",
    b"[1, 2]",
    b'{"a": "x", "b": 1.50, "c": [ {"d": null}, {"d": true} ], "a": "twice"}',
    '{"ü": {"a": "\\u00fc\\ud83d"}, "a": {"k": []}, "b": -0}'.encode(),
    b'{"c": [{"d": {"a": 1}}, {"d": "y"}], "x": 1e3}',
)
KEYS = (None, b"", b"k", b"\xff\x00", "ü".encode())
HEADERS = ((), (("h", b"1"), ("g", None), ("h", b"2")), (("ü", b""),))

VERSIONS: dict[type[Step], tuple[tuple[Step, ...], int, str]] = {
    Drop: ((Drop(when=When(test=IsTombstone(), negate=True)),), 1, "960fdfba4d0e07eb"),
    Sample: ((Sample(parts_per_million=500_000),), 1, "83c2542bdd3ee914"),
    AddHeader: ((AddHeader(name="new", value="ü", when=When(test=HasHeader(name="h"))),), 1, "87d18e36b68f80cb"),
    DropHeaders: ((DropHeaders(names=("h", "ü")),), 1, "8ac938dd5c0ebffb"),
    Provenance: ((Provenance(cluster="a"),), 1, "882699a0451f788d"),
    Json: (
        (
            Json(paths=("$.a", "$.c[*].d"), change=Change.HASH),
            Json(paths=("$.b", "$['ü'].*"), change=Change.REDACT),
            Json(paths=("$.x",), change=Change.REDACT, replacement="7", is_object=True),
            Json(paths=("$.c[*]", "$.k"), change=Change.REMOVE),
        ),
        1,
        "f707c15edab716f3",
    ),
    OnlyFields: ((OnlyFields(include=("a", "b"), renames=(("b", "ü"),)),), 1, "4a7c79bb18ae1b9b"),
    Cast: (
        (
            Cast(paths=("$.a", "$.c[*].d"), to="string"),
            Cast(paths=("$.b", "$.x"), to="float32"),
            Cast(paths=("$['ü'].a",), to="boolean"),
            Cast(paths=("$.b", "$.x"), to="int16", when=When(test=HasHeader(name="h"))),
        ),
        1,
        "14b734e0ee9989c6",
    ),
    HashKey: ((HashKey(),), 1, "b4480a9c06b8d73b"),
    Route: (
        (Route(pattern="a\\.(t.*)", replacement="b-$1", when=When(test=TopicMatches(pattern="a\\.t"))),),
        1,
        "4397e400383a50e0",
    ),
    RouteByTime: (
        (RouteByTime(topic_format="${timestamp}_${topic}", time_format="yyyyMMdd'T'HH.mm.ss.SSS"),),
        1,
        "2d0eb7289de1edd3",
    ),
}


def records() -> pa.RecordBatch:
    """Each value with each key; topics, partitions, times and headers change between them."""
    rows = []
    for at, (key, value) in enumerate((key, value) for key in KEYS for value in VALUES):
        pairs = [{"key": name, "value": data} for name, data in HEADERS[at % 3]]
        rows.append((("t", "u")[at % 2], at % 3, 100 + at, 1_700_000_000_000 + at, 0, key, value, pairs))
    schema = to_arrow_schema(SCHEMA, timezone="UTC")
    arrays = [pa.array(list(column), field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@pytest.mark.parametrize("kind", VERSIONS, ids=lambda kind: kind.__name__)
def test_a_step_makes_of_records_what_its_version_makes(kind: type[Step]) -> None:
    steps, version, digest = VERSIONS[kind]
    rows = ArrowSteps(steps, {"t": "a.t", "u": "a.u"}, b"0123456789abcdef")(records()).to_pylist()
    kept = [
        (*(row[name] for name in NAMES), [(pair["key"], pair["value"]) for pair in row["headers"]], not row["poison"])
        for row in rows
    ]
    assert 0 < len(kept) <= len(KEYS) * len(VALUES)
    assert (STEP_VERSIONS[kind], hashlib.sha256(repr(kept).encode()).hexdigest()[:16]) == (version, digest)


def test_every_step_has_a_version_which_counts_from_the_second_one_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert STEP_VERSIONS.keys() == set(get_args(Step)) == VERSIONS.keys() | set(BY_SPARK)
    steps = (HashKey(), Sample(parts_per_million=1))
    first = meaning_of(steps)
    assert first == [["HashKey", {}], ["Sample", {"parts_per_million": 1}]]  # as before there were versions
    monkeypatch.setitem(STEP_VERSIONS, HashKey, 2)
    assert meaning_of(steps) == [["HashKey", {}, 2], first[1]]
