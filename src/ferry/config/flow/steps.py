"""What a transform does to each record, step by step: the ready-made steps, and those of Connect that Ferry knows.

Plain data; `ferry.features.records.spark.steps` carries them out. A step with `when` leaves alone the records that it
does not hold for. Names of topics are those of the target, as Connect's transforms see them (`SourceTask` has named
them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMatches:
    """The whole name of the target topic is matched by a Java regular expression (`TopicNameMatches`)."""

    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HasHeader:
    """There is a header of that name (`HasHeaderKey`)."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IsTombstone:
    """The value is null (`RecordIsTombstone`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Whether a step is for a record; `negate` is Connect's."""

    test: TopicMatches | HasHeader | IsTombstone
    negate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Leave the record out (`Filter`)."""

    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Leave out all records but those for which a condition of SQL is true."""

    sql: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Keep so many of a million: by the hash of the key, else of partition and offset. So a key has all or none."""

    parts_per_million: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddHeader:
    """One more header at the end, whatever others there are (`InsertHeader`). `value` is written as UTF-8."""

    name: str
    value: str
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropHeaders:
    """Leave out all headers of these names (`DropHeaders`)."""

    names: tuple[str, ...]
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Headers that say where a record came from: cluster, topic, partition, offset, each as text."""

    cluster: str


class Change(StrEnum):
    """What becomes of what a path leads to."""

    REDACT = "redact"
    """Nothing of it is left but its type: "", 0, false, [], {} (`MaskField`)."""
    HASH = "hash"
    """The HMAC-SHA-256 of it with the salt, in hexadecimal, as a string: equal stays equal."""
    REMOVE = "remove"
    """The field goes, name and all (`ReplaceField`, exclude)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """Change values of JSON where paths lead; all other bytes stay. A value that is no JSON is poison; null is none.

    A path is `$` and then `.name`, `['name']`, `[*]` (each item of a list) or `.*` (each value), as of JSONPath.
    """

    paths: tuple[str, ...]
    change: Change
    replacement: str | None = None
    """With REDACT: in place of what is of the type; a number has to be one in JSON's writing (`MaskField`)."""
    is_object: bool = False
    """Whether a value that is JSON and no object is poison, too, as for Connect's."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyFields:
    """Of the top level of a JSON object only these fields, and new names for some (`ReplaceField`).

    `include` empty: all of them.
    """

    include: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    when: When | None = None


CAST_TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
"""What can be cast to, by Connect's names."""
Casts = tuple[tuple[tuple[str, ...], str], ...]
"""Of each type the paths that lead to what becomes of it; none: the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Make JSON of another type where paths lead (`Cast`), or all of it; else as Json, also of the key's."""

    paths: tuple[str, ...]
    """None: the whole value."""
    to: str
    """One of CAST_TYPES."""
    of_key: bool = False
    is_object: bool = False
    """As of Json."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HashKey:
    """The HMAC-SHA-256 of the key with the salt, in hexadecimal; no key stays none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Another topic for those whose whole name is matched by a Java regular expression (`RegexRouter`)."""

    pattern: str
    replacement: str
    """As Java's `Matcher.replaceFirst` reads it: `$1`, `${name}`, a backslash before what stands for itself."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteByTime:
    """Another topic by the record's time in UTC (`TimestampRouter`)."""

    topic_format: str
    """With `${topic}` and `${timestamp}`."""
    time_format: str
    """As Java's `SimpleDateFormat` reads it, of the letters y M d H m s S."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Another topic by an expression of SQL, in which `target` is the name that the policy gives."""

    sql: str


Step = (
    Drop | Keep | Sample | AddHeader | DropHeaders | Provenance | Json | OnlyFields | Cast | HashKey
    | Route | RouteByTime | Rename
)  # fmt: skip

STEP_VERSIONS: Mapping[type[Step], int] = {
    Drop: 1,
    Keep: 1,
    Sample: 1,
    AddHeader: 1,
    DropHeaders: 1,
    Provenance: 1,
    Json: 1,
    OnlyFields: 1,
    Cast: 1,
    HashKey: 1,
    Route: 1,
    RouteByTime: 1,
    Rename: 1,
}
"""One more where a step makes something else of a record than the Ferry before did. It is part of the digest of a
transform that has the step: what was copied before was then made by an earlier transform, and is not called altered."""


def meaning_of(steps: Iterable[Step]) -> list[list[object]]:
    """What the steps do, for a digest: names, parameters, and the version behind the first one."""
    found: list[list[object]] = []
    for step in steps:
        version = STEP_VERSIONS[type(step)]
        found.append([type(step).__name__, asdict(step), *([version] if version > 1 else [])])
    return found
