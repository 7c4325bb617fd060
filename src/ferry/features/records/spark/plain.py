"""Transforms of plain steps, carried out on Arrow batches by Python alone: no record passes through Spark's JVM.

What a step does is what `steps` says as columns of Spark; a test holds the two against each other.
SQL, functions and topics that records name themselves are Spark's alone. Runs in Python workers; knows no Spark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, takewhile

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ferry.config.flow.routes import target_by_steps
from ferry.config.flow.steps import (
    AddHeader,
    Cast,
    Drop,
    DropHeaders,
    HasHeader,
    HashKey,
    IsTombstone,
    Json,
    OnlyFields,
    Provenance,
    Route,
    Sample,
    Step,
    TopicMatches,
    When,
)
from ferry.config.flow.transforms import TransformSpec
from ferry.config.text.regex import compile_java
from ferry.features.records.rules.json_column import ColumnChange
from ferry.features.records.spark.edits import JSON_STEPS, change_of, changed_values, column_of, hashed_keys
from ferry.spark.columns import nullable_binaries, strings
from ferry.wire.arrow_columns import Flags, edges_of, name_bytes, numbers_of, valid_of

_COLUMNS = ("topic", "target", "partition", "offset", "timestamp", "key", "value", "headers", "poison")
_MILLION = 1_000_000
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_NO_NAME = b"its target is no name of a topic"
_PLAIN = (Drop, Sample, AddHeader, DropHeaders, Provenance, Json, OnlyFields, Cast, HashKey, Route)


@dataclass(frozen=True)
class PlainChange:
    """The steps of a transform for the topics in `targets`, with the policy's own name of each. Travels pickled."""

    steps: tuple[Step, ...]
    targets: Mapping[str, str]
    secret: bytes = field(repr=False)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """From the columns of the source `ferry` to those of `ferry.features.records.spark.transform`."""
        table = _Table(batch, self.targets)
        filters = sum(1 for _ in takewhile(lambda step: isinstance(step, Sample), self.steps))
        for number, act in enumerate(self._acts):
            if number == filters:
                table.remember()
            act(table)
        return table.result()

    @cached_property
    def _acts(self) -> list[Callable[[_Table], None]]:
        """One for each step; of changes of JSON that follow each other the first does all."""
        acts: list[Callable[[_Table], None]] = []
        for (column, when), group in groupby(self.steps, lambda step: (_json_column(step), _when(step))):
            steps = list(group)
            if column:
                changes = [change_of(step, self.secret) for step in steps if isinstance(step, JSON_STEPS)]
                acts.append(_changing(changes, when, column))
                acts += [_nothing] * (len(steps) - 1)
            else:
                acts += [_act(step, self.secret) for step in steps]
        return acts

    def __getstate__(self) -> dict[str, object]:
        """Without what is made of it."""
        return {"steps": self.steps, "targets": self.targets, "secret": self.secret}


def plain_change(spec: TransformSpec, targets: Mapping[str, str]) -> PlainChange | None:
    """The transform, if it is one of plain steps; None: Spark has to carry it out. Raises BadInput as `secret`."""
    if spec.sql is not None or spec.function is not None:
        return None
    if not all(isinstance(step, _PLAIN) for step in spec.steps):
        return None
    if any(isinstance(step, Route) and not _is_of_topic(step.when) for step in spec.steps):
        return None
    return PlainChange(spec.steps, targets, spec.secret())


def _is_of_topic(when: When | None) -> bool:
    """Whether it holds for all records of a topic or for none."""
    return when is None or isinstance(when.test, TopicMatches)


def _json_column(step: Step) -> str:
    """Whose JSON a step changes; empty: none's."""
    return column_of(step) if isinstance(step, JSON_STEPS) else ""


def _when(step: Step) -> When | None:
    return getattr(step, "when", None)


def _nothing(_: _Table) -> None:
    return


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
    raise AssertionError(step)


class _Table:
    """Records under way."""

    def __init__(self, batch: pa.RecordBatch, targets: Mapping[str, str]) -> None:
        self._batch = batch
        self._names = dict(targets)  # what the target of each source topic is by now
        self._first_names = dict(targets)
        self._poison: dict[int, bytes] = {}
        self.remember()

    def remember(self) -> None:
        """This is what a record has that a later step cannot be applied to."""
        self._before = self._batch

    def _with(self, name: str, column: pa.Array) -> None:
        self._batch = self._batch.set_column(self._batch.schema.get_field_index(name), name, column)

    def _only(self, kept: Flags) -> None:
        if kept.all():
            return
        mask = _flags(kept)
        rows = np.flatnonzero(kept)
        if self._poison:
            at = {int(row): number for number, row in enumerate(rows)}
            self._poison = {at[row]: why for row, why in self._poison.items() if row in at}
        same = self._before is self._batch
        self._batch = self._batch.filter(mask)
        self._before = self._batch if same else self._before.filter(mask)

    def _holds(self, when: When | None) -> Flags:
        count = self._batch.num_rows
        if when is None:
            return np.ones(count, np.bool_)
        found: Flags
        match when.test:
            case TopicMatches():
                pattern = compile_java(when.test.pattern)
                found = self._by_topic({topic: bool(pattern.fullmatch(name)) for topic, name in self._names.items()})
            case HasHeader():
                found = self._has_header(when.test.name)
            case IsTombstone():
                found = ~valid_of(self._batch.column("value"))
        return ~found if when.negate else found

    def _by_topic(self, values: Mapping[str, bool]) -> Flags:
        encoded = self._batch.column("topic").dictionary_encode()
        of_codes = np.array([values[topic] for topic in encoded.dictionary.to_pylist()], np.bool_)
        return of_codes[numbers_of(encoded.indices)] if len(of_codes) else np.zeros(0, np.bool_)

    def _has_header(self, name: str) -> Flags:
        column = self._batch.column("headers")
        edges = edges_of(column)
        if edges[0] == edges[-1]:
            return np.zeros(len(column), np.bool_)
        return np.diff(_sums(_named(column, [name]))[edges]) > 0

    def sample(self, parts_per_million: int) -> None:
        """As Sample."""
        columns = (self._batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "key"))
        places = zip(*columns, strict=True)
        shares = [
            int(hashlib.sha256(f"{topic}:{partition}:{offset}".encode() if key is None else key).hexdigest()[:12], 16)
            % _MILLION
            for topic, partition, offset, key in places
        ]
        self._only(np.array(shares, np.int64) < parts_per_million)

    def drop(self, when: When | None) -> None:
        """As Drop; one that could not be changed stays."""
        kept = ~self._holds(when)
        kept[list(self._poison)] = True
        self._only(kept)

    def change(self, changes: Sequence[ColumnChange], when: When | None, column: str) -> None:
        """As Json, OnlyFields and Cast, of the value or the key."""
        wanted = None if when is None else self._holds(when)
        found, poison = changed_values(changes, self._batch.column(column), wanted, column)
        self._poison = {**poison, **self._poison}  # the first reason counts
        self._with(column, found)

    def hash_keys(self, secret: bytes) -> None:
        """As HashKey."""
        self._with("key", hashed_keys(self._batch.column("key"), secret))

    def route(self, step: Route) -> None:
        """As Route, of whole topics."""
        self._names = {topic: target_by_steps([step], topic, name) for topic, name in self._names.items()}

    def add_provenance(self, cluster: str) -> None:
        """As Provenance."""
        partitions, offsets = (self._batch.column(name).to_pylist() for name in ("partition", "offset"))
        count = len(offsets)
        self._add(
            [
                ("ferry.source.cluster", [cluster.encode()] * count),
                ("ferry.source.topic", [topic.encode() for topic in self._batch.column("topic").to_pylist()]),
                ("ferry.source.partition", [b"%d" % number for number in partitions]),
                ("ferry.source.offset", [b"%d" % number for number in offsets]),
            ],
            np.ones(count, np.bool_),
        )

    def add_headers(self, pairs: Sequence[tuple[str, str]], when: When | None) -> None:
        """As AddHeader."""
        count = self._batch.num_rows
        self._add([(name, [value.encode()] * count) for name, value in pairs], self._holds(when))

    def _add(self, more: Sequence[tuple[str, Sequence[bytes]]], wanted: Flags) -> None:
        """Headers at the end of all that are wanted: a name, and a value for each row."""
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
        """As DropHeaders."""
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

    def result(self) -> pa.RecordBatch:
        """The records that are left; one that could not be changed as it was."""
        for topic, name in self._names.items():
            if not _TOPIC_NAME.fullmatch(name) or name in (".", ".."):
                rows = np.flatnonzero(self._by_topic({one: one == topic for one in self._names}))
                self._poison = {**dict.fromkeys(rows.tolist(), _NO_NAME), **self._poison}
        batch, count = self._batch, self._batch.num_rows
        topics = batch.column("topic").to_pylist() if len(self._names) > 1 or self._poison else [*self._names] * count
        names = [self._names[topic] for topic in topics]
        columns = {name: batch.column(name) for name in _COLUMNS if name not in ("target", "poison")}
        poison = pa.nulls(count, pa.string())
        if self._poison:
            spoilt = np.zeros(count, np.bool_)
            spoilt[list(self._poison)] = True
            order = _longs(np.where(spoilt, np.arange(count, 2 * count), np.arange(count)))
            for name in ("key", "value", "headers"):
                columns[name] = pa.concat_arrays([columns[name], self._before.column(name)]).take(order)
            poison = nullable_binaries([self._poison.get(row) for row in range(count)], pa.string())
            names = [
                self._first_names[topic] if is_spoilt else name
                for topic, name, is_spoilt in zip(topics, names, spoilt, strict=True)
            ]
        columns |= {"target": strings(names), "poison": poison}
        return pa.RecordBatch.from_arrays([columns[name] for name in _COLUMNS], names=list(_COLUMNS))


def _named(column: pa.ListArray, names: Sequence[str]) -> Flags:
    """Of all headers behind a column, also those that are none of its rows', whether they have one of these names."""
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
