"""`ferry.transforms` of one flow: each transform with its lines, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TypeVar

from ferry.config.flow.record_sql import condition_slip, expression_slip, query_slip
from ferry.config.flow.record_text import Slip
from ferry.config.flow.routes import why_by_record
from ferry.config.flow.steps import (
    CAST_TYPES,
    Cast,
    Casts,
    Change,
    HashKey,
    Json,
    Keep,
    Provenance,
    Rename,
    Sample,
    Step,
)
from ferry.config.flow.transforms import CONNECT, Poison, TransformSpec
from ferry.config.keys import values
from ferry.config.keys.layers import Entries
from ferry.config.keys.own import TRANSFORM_PARTS
from ferry.config.reading.findings import Findings, Setting
from ferry.config.text.json_path import parse_path
from ferry.config.text.problem import BadValue
from ferry.config.text.properties import Property
from ferry.config.text.secrets import Providers, has_reference
from ferry.messages.catalogue import sentence
from ferry.model import Flow
from ferry.policy import illegal_name

T = TypeVar("T")

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_LEAST_SALT = 16
_MOST_TARGETS = 200
_MILLION = 1_000_000
_CHANGES = (("remove", Change.REMOVE), ("redact", Change.REDACT), ("hash", Change.HASH))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformReader:
    """Reads the transforms of one flow; adds problems to `findings`, and the origin of each value to `settings`."""

    flow: Flow
    entries: Entries
    providers: Providers
    findings: Findings
    settings: list[Setting] = field(default_factory=list)
    poison: Poison = Poison.FAIL
    """The value for transforms that do not set it."""

    def read(self, names: tuple[str, ...]) -> tuple[TransformSpec, ...]:
        """Return the transforms that `ferry.transforms` names, in its order."""
        return tuple(self._one(name) for name in names)

    def _one(self, name: str) -> TransformSpec:
        topics = self._value(name, "topics", values.pattern_list)
        sql = self._sql(name, "sql", query_slip)
        function = self._value(name, "function", _function)
        targets = self._value(name, "targets", target_names)
        steps = tuple(self._steps(name, by_record=bool(targets)))
        line = self.entries.of_flow(self.flow, "ferry.transforms")
        key = f"ferry.transform.{name}.topics"
        if all(self._entry(name, part) is None for part in TRANSFORM_PARTS):
            self.findings.report(
                line,
                line.key if line is not None else key,
                sentence("line.transform.unknown", name=name, key=key),
            )
            return TransformSpec(name=name, topics=topics)
        if not topics.items:
            message = sentence("line.transform.no-topic", name=name, key=key)
            self.findings.report(self._entry(name, "topics") or line, key, message)
        if self._says(name, "sql") and function is not None:
            self._report(name, "function", sentence("line.transform.sql-and-function"))
        partitions = self._value(name, "partitions", values.optional_integer(1, 2**31 - 1))
        chosen = self._says(name, "sql") or function is not None or any(map(why_by_record, steps))
        for why in targets_in_vain(name, targets, partitions, chosen=chosen):
            self._report(name, "targets", why)
        does = steps or partitions is not None or any(map(partial(self._says, name), ("sql", "function", *_IN_SQL)))
        if not does and not self._is_reported(name):
            self.findings.report(
                line,
                f"ferry.transform.{name}",
                sentence(
                    "line.transform.nothing",
                    ways=", ".join(f"ferry.transform.{name}.{part}" for part in _DOING),
                    name=name,
                ),
            )
        return TransformSpec(
            name=name,
            topics=topics,
            sql=sql,
            function=function,
            steps=steps,
            partitions=partitions,
            targets=targets,
            poison=self._poison(name, steps),
            salt=self._salt(name, steps),
            timeout_ms=self._value(name, "timeout.ms", values.milliseconds(0)),
            providers=self.providers,
        )

    def _steps(self, name: str, *, by_record: bool) -> Iterator[Step]:
        """Yield the ready-made steps, in the order in which they are carried out, whatever the order of lines."""
        # The result of SQL or a function before them has columns of its own.
        known = not self._says(name, "sql") and not self._says(name, "function")
        where = self._sql(name, "where", partial(condition_slip, columns_known=known))
        if where is not None:
            yield Keep(sql=where)
        sample = self._value(name, "sample", _percent)
        if sample is not None:
            yield Sample(parts_per_million=sample)
        for part, change in _CHANGES:
            paths = self._value(name, part, _paths)
            if paths:
                yield Json(paths=paths, change=change)
        for part, of_key in (("cast", False), ("cast.key", True)):
            for paths, kind in self._value(name, part, _casts):
                yield Cast(paths=paths, to=kind, of_key=of_key)
        if self._value(name, "hash.key", values.boolean):
            yield HashKey()
        if self._value(name, "provenance", values.boolean):
            yield Provenance(cluster=self.flow.source)
        target = self._sql(name, "target", partial(expression_slip, columns_known=known))
        if target is not None:
            step = Rename(sql=target)
            entry, why = self._entry(name, "target"), why_by_record(step)
            if why is not None and not by_record:
                self.findings.warn(entry, f"ferry.transform.{name}.target" if entry is None else entry.key, why)
            yield step

    def _sql(self, name: str, part: str, slip_of: Callable[[str], Slip | None]) -> str | None:
        """Return text for Spark; what is certain to be wrong with it is reported without Spark."""

        def read(text: str) -> str | None:
            found = slip_of(text) if text.strip() else None
            if found is not None and found.is_sure:
                raise BadValue(str(found))
            return values.optional_text(text)

        sql = self._value(name, part, read)
        doubt, entry = None if sql is None else slip_of(sql), self._entry(name, part)
        if doubt is not None and entry is not None and not has_reference(entry.value):
            self.findings.warn(entry, entry.key, str(doubt))
        return sql

    def _salt(self, name: str, steps: tuple[Step, ...]) -> str:
        """Return the salt as written.

        It is also resolved here, so that a missing or short one is reported with its line.
        """
        entry = self._entry(name, "salt")
        self._value(name, "salt", _salt)
        hashes = any(isinstance(one, HashKey) or (isinstance(one, Json) and one.change is Change.HASH) for one in steps)
        key = f"ferry.transform.{name}.salt"
        if hashes and (entry is None or not entry.value.strip()):
            part = "hash" if self._entry(name, "hash") is not None else "hash.key"
            message = sentence("line.transform.no-salt", key=key)
            self._report(name, part, message)
        if not hashes and entry is not None:
            self.findings.warn(entry, entry.key, sentence("line.no-effect.hash"))
        return "" if entry is None or not hashes else entry.value

    def _poison(self, name: str, steps: tuple[Step, ...]) -> Poison:
        written = Poison(self._value(name, "poison", values.one_of(tuple(Poison))))
        poison = self.poison if self._entry(name, "poison") is None else written
        if poison is Poison.PASS and any(isinstance(one, Json | Cast | HashKey) for one in steps):
            message = sentence("line.transform.poison-passes")
            entry = self._entry(name, "poison")
            self.findings.warn(entry, entry.key if entry is not None else f"ferry.transform.{name}.poison", message)
        return poison

    def _is_reported(self, name: str) -> bool:
        """Return whether one of its lines is reported already: that it then has no effect needs no report."""
        return any(f"ferry.transform.{name}." in problem.key for problem in self.findings.problems)

    def _entry(self, name: str, part: str) -> Property | None:
        return self.entries.of_flow(self.flow, f"ferry.transform.{name}.{part}")

    def _says(self, name: str, part: str) -> bool:
        """Return whether a line sets it, even wrongly."""
        entry = self._entry(name, part)
        return entry is not None and bool(entry.value.strip())

    def _report(self, name: str, part: str, message: str) -> None:
        entry = self._entry(name, part)
        self.findings.report(entry, entry.key if entry is not None else f"ferry.transform.{name}.{part}", message)

    def _value(self, name: str, part: str, convert: Callable[[str], T]) -> T:
        default = TRANSFORM_PARTS[part].default
        entry = self._entry(name, part)
        if entry is not None:
            self.settings.append(Setting.of(f"ferry.transform.{name}.{part}", entry, default))
        return self.findings.read(entry, convert(default), convert, self.providers)


_DOING = tuple(part for part in TRANSFORM_PARTS if part not in ("topics", "targets", "salt", "poison", "timeout.ms"))
"""Keys with which a transform changes anything."""
_IN_SQL = ("where", "target")


def transform_names(text: str) -> tuple[str, ...]:
    """Read names of transforms, each once."""
    found = values.items(text)
    for one in found:
        if not _NAME.fullmatch(one):
            raise BadValue(sentence("value.transform-name", value=one))
        if one == CONNECT:
            raise BadValue(sentence("value.transform-name.connect", value=one, connect=CONNECT))
    twice = next((one for one in found if found.count(one) > 1), None)
    if twice is not None:
        raise BadValue(sentence("value.twice", value=twice))
    return found


def _function(text: str) -> str | None:
    path = text.strip()
    if path and not _FUNCTION.fullmatch(path):
        raise BadValue(sentence("value.function", path=path))
    return path or None


def _percent(text: str) -> int | None:
    """Read a percentage; return parts per million."""
    if not text.strip():
        return None
    written = text.strip().removesuffix("%").strip()
    try:
        parts = Decimal(written) * (_MILLION // 100)
    except InvalidOperation:
        parts = Decimal(0)
    if not text.strip().endswith("%") or not parts.is_finite() or not 0 < parts <= _MILLION or parts % 1 != 0:
        raise BadValue(sentence("value.share", value=text.strip()))
    return int(parts)


def _paths(text: str) -> tuple[str, ...]:
    paths = values.items(text)
    for one in paths:
        parse_path(one)
    return paths


def targets_in_vain(name: str, targets: tuple[str, ...], partitions: int | None, *, chosen: bool) -> Iterator[str]:
    """Yield what is wrong with a list of topics; `chosen`: records may choose among them."""
    if targets and partitions is None:
        yield (
            f"needs ferry.transform.{name}.partitions: records that choose their topic are assigned to its partitions "
            "by their keys; write how many each of the topics has"
        )
    if targets and not chosen:
        how = (
            f"let TimestampRouter or RegexRouter name them in {CONNECT}"
            if name == CONNECT
            else f"write ferry.transform.{name}.target by columns of the record, as concat(topic, '.', "
            "date_format(timestamp_millis(timestamp), 'yyyy'))"
        )
        yield f"lists topics, and no record chooses one: {how}, or remove the line"


def target_names(text: str) -> tuple[str, ...]:
    """Read names of topics that records may choose, with `{topic}` and `{target}`."""
    found = values.items(text)
    for one in found:
        why = illegal_name(one.replace("{topic}", "t").replace("{target}", "t"))
        if why is not None:
            raise BadValue(sentence("value.targets", value=one, why=why))
    twice = next((one for one in found if found.count(one) > 1), None)
    if twice is not None:
        raise BadValue(sentence("value.twice", value=twice))
    if len(found) > _MOST_TARGETS:
        raise BadValue(sentence("value.targets.many", topics=len(found), most=_MOST_TARGETS))
    return found


def _casts(text: str) -> Casts:
    """Return by type the paths, in the order of the first of each; none, where the whole value is meant."""
    found: dict[str, list[str]] = {}
    items = values.items(text)
    for one in items:
        path, colon, kind = one.rpartition(":")
        if not colon or kind not in CAST_TYPES:
            known = ", ".join(CAST_TYPES)
            raise BadValue(sentence("value.cast", value=one, known=known))
        if path != "$":
            parse_path(path)
        elif len(items) > 1:
            raise BadValue(sentence("value.cast.all", value=one))
        found.setdefault(kind, []).append(path)
    return tuple((tuple(path for path in paths if path != "$"), kind) for kind, paths in found.items())


def _salt(text: str) -> str:
    if text and len(text.encode()) < _LEAST_SALT:
        raise BadValue(sentence("value.salt", least=_LEAST_SALT))
    return text
