"""The steps of a transform (`ferry.config.flow.steps`) over Arrow batches: the only place that carries them out.

SQL is left to Spark: a transform's SQL comes before these steps, or after them (see `transform` in this folder). Runs
in Python workers, without Spark's API.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ferry.config.flow.routes import routed, routed_by_time
from ferry.config.flow.steps import (
    AddHeader,
    Drop,
    DropHeaders,
    HasHeader,
    HashKey,
    IsTombstone,
    Provenance,
    Route,
    RouteByTime,
    Sample,
    Step,
    TopicMatches,
    When,
)
from ferry.config.text.regex import compile_java
from ferry.features.records.rules.json_column import ColumnChange
from ferry.features.records.spark.edits import JSON_STEPS, change_of, changed_values, column_of, hashed_keys
from ferry.run.spark.columns import nullable_binaries, strings, texts
from ferry.wire.arrow_columns import Flags, Longs, edges_of, name_bytes, numbers_of, valid_of

COLUMNS = ("topic", "target", "partition", "offset", "timestamp", "key", "value", "headers", "poison")
"""What a transform returns. `topic`, `partition`, `offset` say where a record came from. `target` is the whole name of
the topic that it goes to. `poison` says why the transform cannot be applied to it, else null."""

BEFORE = ("key", "value", "headers", "target")
"""The columns of a record with poison are restored to their values before the first step; until then these are `_key`
and so on."""

_MILLION = 1_000_000
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NO_NAME = b"its target is not a name of a topic"
_NO_YEAR = b"its timestamp is in no year from 1 to 9999"


@dataclass(frozen=True)
class ArrowSteps:
    """Steps for the topics in `targets`, with the policy's own name of each. Travels pickled."""

    steps: tuple[Step, ...]
    targets: Mapping[str, str]
    secret: bytes = field(repr=False)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Change the columns of the source `ferry` to COLUMNS.

        SQL before the steps may have added `target` and `poison`. Without `target` it is the policy's name; a topic
        that is not in `targets` has none.
        """
        return self._after(batch).result()

    def whole(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change many batches to COLUMNS."""
        return map(self, batches)

    def begun(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change many batches if SQL comes after the steps: all columns, and those of BEFORE, for `finished`."""
        return (self._after(batch).under_way() for batch in batches)

    def _after(self, batch: pa.RecordBatch) -> _Table:
        table = _Table(batch, batch, self.targets)
        for act in self._acts:
            act(table)
        return table

    @cached_property
    def _acts(self) -> list[Callable[[_Table], None]]:
        """One function for each step; changes of JSON that follow each other are one."""
        acts: list[Callable[[_Table], None]] = []
        for (column, when), group in groupby(self.steps, lambda step: (_json_column(step), _when(step))):
            if column:
                changes = [change_of(step, self.secret) for step in group if isinstance(step, JSON_STEPS)]
                acts.append(_changing(changes, when, column))
            else:
                acts += [_act(step, self.secret) for step in group]
        return acts

    def __getstate__(self) -> dict[str, object]:
        """Leave out what is derived from the fields."""
        return {"steps": self.steps, "targets": self.targets, "secret": self.secret}


def finished(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Change what SQL made of `ArrowSteps.begun` to COLUMNS."""
    for batch in batches:
        columns = [batch.column(f"_{name}") for name in BEFORE]
        yield _Table(batch, pa.RecordBatch.from_arrays(columns, names=list(BEFORE)), {}).result()


def _json_column(step: Step) -> str:
    """Return the column whose JSON a step changes; empty: none."""
    return column_of(step) if isinstance(step, JSON_STEPS) else ""


def _when(step: Step) -> When | None:
    return getattr(step, "when", None)


def _changing(changes: Sequence[ColumnChange], when: When | None, column: str) -> Callable[[_Table], None]:
    return lambda table: table.change(changes, when, column)


def _act(step: Step, secret: bytes) -> Callable[[_Table], None]:  # noqa: PLR0911 - one line for each step
    match step:
        case Drop():
            return lambda table: table.drop(step.when)
        case Sample():
            return lambda table: table.sample(step.parts_per_million)
        case AddHeader():
            return lambda table: table.add_headers([(step.name, step.value)], step.when)
        case DropHeaders():
            return lambda table: table.drop_headers(step.names, step.when)
        case Provenance():
            return lambda table: table.add_provenance(step.cluster)
        case HashKey():
            return lambda table: table.hash_keys(secret)
        case Route():
            return lambda table: table.route(step)
        case RouteByTime():
            return lambda table: table.route_by_time(step)
    raise AssertionError(step)


class _Table:
    """Records between steps; `before` has the columns of BEFORE that a record with poison gets back."""

    def __init__(self, batch: pa.RecordBatch, before: pa.RecordBatch, targets: Mapping[str, str]) -> None:
        self._batch = batch
        self._before = before
        self._names: list[str | None] = []
        """Names of targets, to which the numbers in `_codes` refer. It only grows: a route adds what it makes of
        each."""
        self._codes = self._codes_of(batch, targets)
        self._codes_before = self._codes if before is batch else self._codes_of(before, targets)
        self._poison = _poison_of(batch)

    def _codes_of(self, batch: pa.RecordBatch, targets: Mapping[str, str]) -> Longs:
        """Return by row which of the names its target is."""
        is_named = "target" in batch.schema.names
        encoded = batch.column("target" if is_named else "topic").dictionary_encode(null_encoding="encode")
        found = texts(encoded.dictionary)
        codes: Longs = numbers_of(encoded.indices).astype(np.int64) + len(self._names)
        self._names += found if is_named else [targets.get(topic or "") for topic in found]
        return codes

    def _with(self, name: str, column: pa.Array) -> None:
        self._batch = self._batch.set_column(self._batch.schema.get_field_index(name), name, column)

    def _only(self, kept: Flags) -> None:
        if kept.all():
            return
        mask = _flags(kept)
        if self._poison:
            at = {int(row): number for number, row in enumerate(np.flatnonzero(kept))}
            self._poison = {at[row]: why for row, why in self._poison.items() if row in at}
        same = self._before is self._batch
        self._batch = self._batch.filter(mask)
        self._before = self._batch if same else self._before.filter(mask)
        self._codes, self._codes_before = self._codes[kept], self._codes_before[kept]

    def _holds(self, when: When | None) -> Flags:
        count = self._batch.num_rows
        if when is None:
            return np.ones(count, np.bool_)
        found: Flags
        match when.test:
            case TopicMatches():
                pattern = compile_java(when.test.pattern)
                found = self._by_name(lambda name: name is not None and pattern.fullmatch(name) is not None)
            case HasHeader():
                found = self._has_header(when.test.name)
            case IsTombstone():
                found = ~valid_of(self._batch.column("value"))
        return ~found if when.negate else found

    def _by_name(self, test: Callable[[str | None], bool]) -> Flags:
        """Return what a test says of each record's target."""
        found: Flags = np.array([test(name) for name in self._names], np.bool_)
        return found[self._codes]

    def _has_header(self, name: str) -> Flags:
        column = self._batch.column("headers")
        edges = edges_of(column)
        if edges[0] == edges[-1]:
            return np.zeros(len(column), np.bool_)
        return np.diff(_sums(_named(column, [name]))[edges]) > 0

    def sample(self, parts_per_million: int) -> None:
        """Keep so many records of a million (step Sample)."""
        columns = (self._batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "key"))
        places = zip(*columns, strict=True)
        shares = [
            int(hashlib.sha256(f"{topic}:{partition}:{offset}".encode() if key is None else key).hexdigest()[:12], 16)
            % _MILLION
            for topic, partition, offset, key in places
        ]
        self._only(np.array(shares, np.int64) < parts_per_million)

    def drop(self, when: When | None) -> None:
        """Leave records out (step Drop); one that could not be changed stays."""
        kept = ~self._holds(when)
        kept[list(self._poison)] = True
        self._only(kept)

    def change(self, changes: Sequence[ColumnChange], when: When | None, column: str) -> None:
        """Change JSON of the value or the key (steps Json, OnlyFields and Cast)."""
        wanted = None if when is None else self._holds(when)
        found, poison = changed_values(changes, self._batch.column(column), wanted, column)
        self._poison = {**poison, **self._poison}  # the first reason counts
        self._with(column, found)

    def hash_keys(self, secret: bytes) -> None:
        """Hash the keys (step HashKey)."""
        self._with("key", hashed_keys(self._batch.column("key"), secret))

    def route(self, step: Route) -> None:
        """Change targets by a pattern (step Route)."""
        count, wanted = len(self._names), self._holds(step.when)
        self._names += [None if name is None else routed(step, name) for name in self._names]
        self._codes = np.where(wanted, self._codes + count, self._codes)

    def route_by_time(self, step: RouteByTime) -> None:
        """Change targets by the records' time (step RouteByTime)."""
        times, rows = numbers_of(self._batch.column("timestamp")).tolist(), np.flatnonzero(self._holds(step.when))
        numbers: dict[str, int] = {}
        codes = self._codes.copy()
        for row in rows.tolist():
            name = self._names[codes[row]]
            if name is None:
                continue
            try:
                new = routed_by_time(step, name, times[row])
            except ValueError:
                self._poison.setdefault(row, _NO_YEAR)
                continue
            codes[row] = len(self._names) + numbers.setdefault(new, len(numbers))
        self._names += numbers
        self._codes = codes

    def add_provenance(self, cluster: str) -> None:
        """Add headers that say where each record came from (step Provenance)."""
        partitions, offsets = (self._batch.column(name).to_pylist() for name in ("partition", "offset"))
        count = len(offsets)
        self._add(
            [
                ("ferry.source.cluster", [cluster.encode()] * count),
                ("ferry.source.topic", [topic.encode() for topic in self._batch.column("topic").to_pylist()]),
                ("ferry.source.partition", [b"%d" % number for number in partitions]),
                ("ferry.source.offset", [b"%d" % number for number in offsets]),
            ],
            valid_of(self._batch.column("headers")),
        )

    def add_headers(self, pairs: Sequence[tuple[str, str]], when: When | None) -> None:
        """Add one header to the records (step AddHeader)."""
        count = self._batch.num_rows
        wanted = self._holds(when) & valid_of(self._batch.column("headers"))  # SQL may have made them null
        self._add([(name, [value.encode()] * count) for name, value in pairs], wanted)

    def _add(self, more: Sequence[tuple[str, Sequence[bytes]]], wanted: Flags) -> None:
        """Add headers at the end of all wanted records: a name, and a value for each row."""
        column = self._batch.column("headers")
        count, kind = len(column), column.type
        edges = edges_of(column)
        old = column.values.slice(int(edges[0]), int(edges[-1] - edges[0]))
        edges = edges - edges[0]
        new = [_pairs(kind.value_type, [name] * count, values) for name, values in more]
        behind = np.concatenate(([0], np.cumsum(wanted) * len(more)))
        out = edges + behind
        order = np.empty(int(out[-1]), np.int64)
        order[np.arange(len(old)) + np.repeat(behind[:-1], np.diff(edges))] = np.arange(len(old))
        rows = np.flatnonzero(wanted)
        for number in range(len(more)):
            order[out[1:][rows] - len(more) + number] = len(old) + number * count + rows
        self._set_headers(out, pa.concat_arrays([old, *new]).take(_longs(order)))

    def drop_headers(self, names: Sequence[str], when: When | None) -> None:
        """Remove headers by name (step DropHeaders)."""
        column = self._batch.column("headers")
        edges = edges_of(column)
        if edges[0] == edges[-1]:
            return
        gone = _named(column, names)
        if when is not None:
            gone[edges[0] : edges[-1]] &= np.repeat(self._holds(when), np.diff(edges))
        kept = ~gone
        kept[: edges[0]] = kept[edges[-1] :] = False
        self._set_headers(_sums(kept)[edges], column.values.filter(_flags(kept)))

    def _set_headers(self, edges: npt.NDArray[np.int64], pairs: pa.Array) -> None:
        kind = self._batch.schema.field("headers").type
        ends = pa.py_buffer(edges.astype(np.int32))
        self._with("headers", pa.Array.from_buffers(kind, len(edges) - 1, [None, ends], children=[pairs]))

    def under_way(self) -> pa.RecordBatch:
        """Return all columns, with `target`, `poison` and those of BEFORE."""
        own = {
            "target": self._targets(self._codes),
            "poison": self._reasons(),
            **{f"_{name}": self._before.column(name) for name in BEFORE[:-1]},
            "_target": self._targets(self._codes_before),
        }
        others = {name: self._batch.column(name) for name in self._batch.schema.names if name not in own}
        return pa.RecordBatch.from_arrays([*others.values(), *own.values()], names=[*others, *own])

    def result(self) -> pa.RecordBatch:
        """Return the records that are left; one that could not be changed is as it was."""
        no_names = np.flatnonzero(~self._by_name(_is_legal))
        self._poison = {**dict.fromkeys(no_names.tolist(), _NO_NAME), **self._poison}
        count, codes = self._batch.num_rows, self._codes
        columns = {name: self._batch.column(name) for name in COLUMNS if name not in ("target", "poison")}
        if self._poison:
            spoilt = np.zeros(count, np.bool_)
            spoilt[list(self._poison)] = True
            order = _longs(np.where(spoilt, np.arange(count, 2 * count), np.arange(count)))
            for name in BEFORE[:-1]:
                columns[name] = pa.concat_arrays([columns[name], self._before.column(name)]).take(order)
            codes = np.where(spoilt, self._codes_before, codes)
        columns |= {"target": self._targets(codes), "poison": self._reasons()}
        return pa.RecordBatch.from_arrays([columns[name] for name in COLUMNS], names=list(COLUMNS))

    def _targets(self, codes: Longs) -> pa.Array:
        names = [None if name is None else name.encode() for name in self._names]
        return nullable_binaries(names, pa.string()).take(_longs(codes))

    def _reasons(self) -> pa.Array:
        count = self._batch.num_rows
        if not self._poison:
            return pa.nulls(count, pa.string())
        return nullable_binaries([self._poison.get(row) for row in range(count)], pa.string())


def _poison_of(batch: pa.RecordBatch) -> dict[int, bytes]:
    """Return by row why SQL says that a record cannot be changed."""
    if "poison" not in batch.schema.names or batch.column("poison").null_count == batch.num_rows:
        return {}
    reasons = batch.column("poison").cast(pa.binary()).to_pylist()
    return {row: why for row, why in enumerate(reasons) if why is not None}


def _is_legal(name: str | None) -> bool:
    return name is not None and _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


def _named(column: pa.ListArray, names: Sequence[str]) -> Flags:
    """Report for all headers of a column's buffer, also those outside its rows, whether they have one of the names."""
    encoded = column.values.field(0).dictionary_encode()
    wanted = {name.encode() for name in names}
    of_codes = np.array([name in wanted for name in name_bytes(encoded.dictionary)], np.bool_)
    found: Flags = of_codes[numbers_of(encoded.indices)]
    return found


def _sums(flags: Flags) -> npt.NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(flags, dtype=np.int64)))


def _flags(flags: Flags) -> pa.Array:
    bits = pa.py_buffer(np.packbits(flags, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, bits])


def _longs(numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def _pairs(kind: pa.StructType, names: Sequence[str], values: Sequence[bytes]) -> pa.Array:
    children = [strings(names), nullable_binaries(values, pa.binary())]
    return pa.Array.from_buffers(kind, len(names), [None], children=children)
