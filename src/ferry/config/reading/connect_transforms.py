"""`transforms` of MirrorMaker 2's file: Connect's single message transforms that Ferry has, as one transform.

Sources: `org.apache.kafka.connect.transforms` and `.predicates` of Kafka 4.3.0 (KIP-66, KIP-585).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.config.flow.routes import why_by_record
from ferry.config.flow.steps import (
    CAST_TYPES,
    AddHeader,
    Cast,
    Casts,
    Change,
    Drop,
    DropHeaders,
    HasHeader,
    IsTombstone,
    Json,
    OnlyFields,
    Route,
    RouteByTime,
    Step,
    TopicMatches,
    When,
)
from ferry.config.flow.transforms import CONNECT, Poison, TransformSpec
from ferry.config.keys import values
from ferry.config.keys.layers import Entries
from ferry.config.keys.own import TRANSFORM_PARTS
from ferry.config.reading.findings import Findings, Setting
from ferry.config.reading.transforms import target_names, targets_in_vain
from ferry.config.reading.typos import nearest
from ferry.config.text.filters import PatternList
from ferry.config.text.java_replacement import java_replacement
from ferry.config.text.json_path import parse_path, written_path
from ferry.config.text.problem import BadValue
from ferry.config.text.properties import Property
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.config.text.secrets import Providers
from ferry.messages.catalogue import sentence
from ferry.model import Flow

T = TypeVar("T")

NAME = CONNECT
"""The name of the transform that they make together, which is that of its key."""

_PACKAGE = "org.apache.kafka.connect.transforms."
_NOTHING: tuple[str, ...] = ()
_NO_CASTS: Casts = ()
_COMMON = ("type", "predicate", "negate", "plugin.version")
_OWN = ("partitions", "targets")
"""Ferry's own lines for them, as `ferry.transform.transforms.partitions`."""
_IGNORED = "replace.null.with.default"
_TIME_FORMAT = re.compile(
    r"(?:(?:yyyy|yy)(?!y)|MM(?!M)|dd(?!d)|HH(?!H)|mm(?!m)|ss(?!s)|SSS(?!S)|'[^']*'|[^A-Za-z'\[\]{}#])+"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectReader:
    """Reads the transforms of one flow; adds problems to `findings`, and the origin of each value to `settings`."""

    flow: Flow
    entries: Entries
    providers: Providers
    findings: Findings
    settings: list[Setting] = field(default_factory=list)
    poison: Poison = Poison.FAIL

    def read(self) -> TransformSpec | None:
        """Return the transform for all topics that the classes make together; None where there are none."""
        line = self.entries.of_flow(self.flow, NAME)
        names = self._value(NAME, values.items, "")
        if not names:
            return None
        mine = self.entries.of_flow(self.flow, "ferry.transforms")
        if mine is not None and mine.value.strip():
            self.findings.report(
                line, NAME if line is None else line.key, sentence("line.beside-connect", other=mine.key)
            )
        targets = self._value(_own("targets"), target_names, "")
        partitions = self._value(_own("partitions"), values.optional_integer(1, 2**31 - 1), "")
        steps: list[Step] = []
        for name in names:
            steps += self._one(name, by_record=bool(targets))
        for why in targets_in_vain(NAME, targets, partitions, chosen=any(map(why_by_record, steps))):
            self._report(_own("targets"), why)
        self._look_at_own()
        return TransformSpec(
            name=NAME,
            topics=PatternList(items=(".*",)),
            steps=tuple(steps),
            partitions=partitions,
            targets=targets,
            poison=self.poison,
            providers=self.providers,
        )

    def _look_at_own(self) -> None:
        for part in TRANSFORM_PARTS:
            entry = self._entry(_own(part))
            if entry is not None and part not in _OWN:
                message = sentence("line.no-effect.beside-connect", key=NAME, others=" and ".join(map(_own, _OWN)))
                self.findings.report(entry, entry.key, message)

    def _one(self, name: str, *, by_record: bool) -> list[Step]:
        key = f"{NAME}.{name}"
        kind = self._kind(key, _TRANSFORMS, _PACKAGE)
        when = self._when(key)
        if kind is None:
            return []
        self._look_at_parameters(key, (*_TRANSFORMS[kind], *_COMMON))
        steps = _MAKERS[kind](self, key, when)
        for why in () if by_record else filter(None, map(why_by_record, steps)):
            self.findings.warn(self._entry(f"{key}.type"), f"{key}.type", why)
        return steps

    def _kind(self, key: str, known: Mapping[str, object], package: str) -> str | None:
        """Return the class of a transform or a predicate, without its package.

        None, and a problem, for another class.
        """
        entry = self._entry(f"{key}.type")
        if entry is None:
            line = self._entry(key.partition(".")[0])
            owner, _, name = key.partition(".")
            message = sentence("line.no-class", name=name, key=key, package=package, example=next(iter(known)))
            self.findings.report(line, line.key if line is not None else owner, message)
            return None
        self.settings.append(Setting.of(f"{key}.type", entry, ""))
        written = entry.value.strip()
        kind = written.removeprefix(package)
        if kind in known:
            return kind
        message = sentence("line.class", written=written, known=", ".join(known))
        self.findings.report(entry, entry.key, message)
        return None

    def _when(self, key: str) -> When | None:
        name = self._value(f"{key}.predicate", values.optional_text, "")
        negate = self._value(f"{key}.negate", values.boolean, "false")
        if name is None:
            if negate:
                self._report(f"{key}.negate", sentence("line.predicate.none"))
            return None
        declared = self._value("predicates", values.items, "")
        if name not in declared:
            near = nearest(name, declared)
            remedy = f"did you mean {near}?" if near else f"write predicates = {', '.join((*declared, name))}"
            self._report(f"{key}.predicate", sentence("line.predicate.unknown", name=name, remedy=remedy))
            return None
        place = f"predicates.{name}"
        kind = self._kind(place, _PREDICATES, f"{_PACKAGE}predicates.")
        if kind is None:
            return None
        self._look_at_parameters(place, (*_PREDICATES[kind], "type", "plugin.version"))
        match kind:
            case "TopicNameMatches":
                return When(test=TopicMatches(pattern=self._needed(f"{place}.pattern", _pattern, ".*")), negate=negate)
            case "HasHeaderKey":
                return When(test=HasHeader(name=self._needed(f"{place}.name", values.text, "?")), negate=negate)
        return When(test=IsTombstone(), negate=negate)

    def insert_header(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of an `InsertHeader`."""
        name = self._needed(f"{key}.header", values.text, "?")
        return [AddHeader(name=name, value=self._needed(f"{key}.value.literal", str, "?"), when=when)]

    def drop_headers(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of a `DropHeaders`."""
        return [DropHeaders(names=self._needed(f"{key}.headers", _some, _NOTHING), when=when)]

    def replace_field(self, key: str, when: When | None) -> list[Step]:
        """Read `ReplaceField$Value`. Names are those before the renaming, so what is left out goes first."""
        exclude = self._value(f"{key}.exclude", _fields, "")
        include = self._value(f"{key}.include", values.items, "")
        renames = self._value(f"{key}.renames", _renames, "")
        self._value(f"{key}.{_IGNORED}", values.boolean, "true")
        steps: list[Step] = []
        if exclude:
            steps.append(Json(paths=exclude, change=Change.REMOVE, is_object=True, when=when))
        if include or renames or not exclude:
            steps.append(OnlyFields(include=include, renames=renames, when=when))
        return steps

    def mask_field(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of a `MaskField$Value`."""
        paths = self._needed(f"{key}.fields", _fields, _NOTHING)
        replacement = self._value(f"{key}.replacement", values.optional_text, "")
        self._value(f"{key}.{_IGNORED}", values.boolean, "true")
        return [Json(paths=paths, change=Change.REDACT, replacement=replacement, is_object=True, when=when)]

    def cast_value(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of a `Cast$Value`."""
        return self._cast(key, when, of_key=False)

    def cast_key(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of a `Cast$Key`."""
        return self._cast(key, when, of_key=True)

    def _cast(self, key: str, when: When | None, *, of_key: bool) -> list[Step]:
        casts = self._needed(f"{key}.spec", _spec, _NO_CASTS)
        self._value(f"{key}.{_IGNORED}", values.boolean, "true")
        return [Cast(paths=paths, to=kind, of_key=of_key, is_object=bool(paths), when=when) for paths, kind in casts]

    def filter(self, _key: str, when: When | None) -> list[Step]:
        """Return the step of a `Filter`, which has no lines of its own."""
        return [Drop(when=when)]

    def regex_router(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of a `RegexRouter`."""
        pattern = self._needed(f"{key}.regex", _pattern, "x")
        replacement = self._needed(f"{key}.replacement", _replacement(pattern), "x")
        return [Route(pattern=pattern, replacement=replacement, when=when)]

    def timestamp_router(self, key: str, when: When | None) -> list[Step]:
        """Read the lines of a `TimestampRouter`."""
        topic_format = self._value(f"{key}.topic.format", values.text, "${topic}-${timestamp}")
        time_format = self._value(f"{key}.timestamp.format", _time_format, "yyyyMMdd")
        return [RouteByTime(topic_format=topic_format, time_format=time_format, when=when)]

    def _look_at_parameters(self, key: str, known: tuple[str, ...]) -> None:
        for prefix in (f"{self.flow}.{key}.", f"{key}."):
            for name, entry in self.entries.under(prefix).items():
                if name not in known:
                    near = nearest(name, known)
                    remedy = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
                    self.findings.report(entry, entry.key, sentence("line.parameter.unknown", remedy=remedy))

    def _entry(self, key: str) -> Property | None:
        return self.entries.of_flow(self.flow, key)

    def _report(self, key: str, message: str) -> None:
        entry = self._entry(key)
        self.findings.report(entry, key if entry is None else entry.key, message)

    def _needed(self, key: str, convert: Callable[[str], T], instead: T) -> T:
        entry = self._entry(key)
        if entry is None:
            line = self._entry(f"{key.rpartition('.')[0]}.type")
            self.findings.report(line, key, sentence("line.parameter.missing", key=key))
            return instead
        self.settings.append(Setting.of(key, entry, ""))
        return self.findings.read(entry, instead, convert, self.providers)

    def _value(self, key: str, convert: Callable[[str], T], default: str) -> T:
        entry = self._entry(key)
        if entry is not None:
            self.settings.append(Setting.of(key, entry, default))
        return self.findings.read(entry, convert(default), convert, self.providers)


_TRANSFORMS: Mapping[str, tuple[str, ...]] = {
    "InsertHeader": ("header", "value.literal"),
    "DropHeaders": ("headers",),
    "ReplaceField$Value": ("exclude", "include", "renames", _IGNORED),
    "MaskField$Value": ("fields", "replacement", _IGNORED),
    "Cast$Value": ("spec", _IGNORED),
    "Cast$Key": ("spec", _IGNORED),
    "RegexRouter": ("regex", "replacement"),
    "Filter": (),
    "TimestampRouter": ("topic.format", "timestamp.format"),
}
"""The classes, with their parameters."""

_PREDICATES: Mapping[str, tuple[str, ...]] = {
    "TopicNameMatches": ("pattern",),
    "HasHeaderKey": ("name",),
    "RecordIsTombstone": (),
}

_MAKERS: Mapping[str, Callable[[ConnectReader, str, When | None], list[Step]]] = {
    "InsertHeader": ConnectReader.insert_header,
    "DropHeaders": ConnectReader.drop_headers,
    "ReplaceField$Value": ConnectReader.replace_field,
    "MaskField$Value": ConnectReader.mask_field,
    "Cast$Value": ConnectReader.cast_value,
    "Cast$Key": ConnectReader.cast_key,
    "RegexRouter": ConnectReader.regex_router,
    "Filter": ConnectReader.filter,
    "TimestampRouter": ConnectReader.timestamp_router,
}


def _own(part: str) -> str:
    return f"ferry.transform.{NAME}.{part}"


def _some(text: str) -> tuple[str, ...]:
    found = values.items(text)
    if not found:
        raise BadValue(sentence("value.names.empty"))
    return found


def _fields(text: str) -> tuple[str, ...]:
    """Return names of the top level as paths."""
    paths = tuple(map(written_path, values.items(text)))
    for one in paths:
        parse_path(one)
    return paths


def _spec(text: str) -> Casts:
    """Return by type the paths of the fields; none, where a type alone is for the whole value."""
    items = _some(text)
    found: dict[str, list[str]] = {}
    for one in items:
        name, colon, kind = one.rpartition(":")
        if kind.strip().lower() not in CAST_TYPES or (colon and not name.strip()):
            raise BadValue(sentence("value.cast.connect", value=one, types=", ".join(CAST_TYPES)))
        if not colon and len(items) > 1:
            raise BadValue(sentence("value.cast.whole", value=one))
        mine = found.setdefault(kind.strip().lower(), [])
        if colon:
            mine.append(written_path(name.strip()))
    return tuple((tuple(paths), kind) for kind, paths in found.items())


def _renames(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for one in values.items(text):
        old, colon, new = one.partition(":")
        if not colon or not old or not new or ":" in new:
            raise BadValue(sentence("value.rename", value=one))
        found.append((old, new))
    return tuple(found)


def _pattern(text: str) -> str:
    try:
        compile_java(text)
    except NotExpressible as error:
        raise BadValue(sentence("value.pattern", pattern=text, error=str(error))) from None
    return text


def _replacement(pattern: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            compile_java(pattern).sub(java_replacement(text), "")
        except (ValueError, IndexError, re.error) as error:
            raise BadValue(sentence("value.replacement", value=text, error=str(error))) from None
        return text

    return read


def _time_format(text: str) -> str:
    if not _TIME_FORMAT.fullmatch(text):
        raise BadValue(sentence("value.time-format", value=text))
    return text
