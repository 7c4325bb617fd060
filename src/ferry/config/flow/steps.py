"""What a transform does to each record, step by step: the ready-made steps, and those of Connect that Ferry has.

Plain data; `ferry.features.records.spark.steps` carries them out. A step with `when` leaves records unchanged for which
the condition does not hold. Names of topics are those of the target, as Connect's transforms see them (`SourceTask` has
named them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMatches:
    """A Java regular expression matches the whole name of the target topic (`TopicNameMatches`)."""

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
    """Whether a step is for a record; `negate` has Connect's meaning."""

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
    """Keep this share of a million, by the hash of the key, else of partition and offset.

    All records of a key share a fate.
    """

    parts_per_million: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddHeader:
    """Add one more header at the end, whatever others there are (`InsertHeader`). `value` is written as UTF-8."""

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
    """Add headers with a record's origin: cluster, topic, partition, offset, each as text."""

    cluster: str


class Change(StrEnum):
    """What happens to a value that a path leads to."""

    REDACT = "redact"
    """Only its type stays: "", 0, false, [], {} (`MaskField`)."""
    HASH = "hash"
    """It becomes its HMAC-SHA-256 with the salt, in hexadecimal, as a string: equal values stay equal."""
    REMOVE = "remove"
    """The field is removed with its name (`ReplaceField`, exclude)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Json:
    """Change values of JSON where paths lead; all other bytes stay. A value that is not JSON is poison; null is not.

    A path is `$` and then `.name`, `['name']`, `[*]` (each item of a list) or `.*` (each value), as in JSONPath.
    """

    paths: tuple[str, ...]
    change: Change
    replacement: str | None = None
    """With REDACT: the value in place of values of its type; a number must be written as in JSON (`MaskField`)."""
    is_object: bool = False
    """Whether a value that is JSON but no object is poison, too, as with Connect."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlyFields:
    """Keep only these fields of the top level of a JSON object, with new names for some (`ReplaceField`).

    `include` empty: all of them.
    """

    include: tuple[str, ...] = ()
    renames: tuple[tuple[str, str], ...] = ()
    when: When | None = None


CAST_TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
"""The types of a cast, by Connect's names."""
Casts = tuple[tuple[tuple[str, ...], str], ...]
"""For each type the paths of the values to cast; no path: the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Cast JSON to another type where paths lead (`Cast`), or all of it; also JSON of the key.

    A value that is not JSON is poison; null is not.
    """

    paths: tuple[str, ...]
    """No path: the whole value."""
    to: str
    """One of CAST_TYPES."""
    of_key: bool = False
    is_object: bool = False
    """Whether a value that is JSON but no object is poison, too, as with Connect."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HashKey:
    """Replace the key by its HMAC-SHA-256 with the salt, in hexadecimal; a null key stays null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Give another topic to records whose whole topic name a Java regular expression matches (`RegexRouter`)."""

    pattern: str
    replacement: str
    """In the form of Java's `Matcher.replaceFirst`: `$1`, `${name}`, a backslash before a literal character."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteByTime:
    """Give another topic by the record's time in UTC (`TimestampRouter`)."""

    topic_format: str
    """With `${topic}` and `${timestamp}`."""
    time_format: str
    """In the form of Java's `SimpleDateFormat`, with the letters y M d H m s S."""
    when: When | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """Give another topic by an expression of SQL, in which `target` is the name that the policy gives."""

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
"""The version of each step. It grows where a step makes something else of a record than it did in earlier Ferrys.

It is part of the digest of a transform that has the step. So what was copied before counts as made by an earlier
transform, and not as altered.
"""


def meaning_of(steps: Iterable[Step]) -> list[list[object]]:
    """Return what the steps do, for a digest: names, parameters, and a version that is not the first."""
    found: list[list[object]] = []
    for step in steps:
        version = STEP_VERSIONS[type(step)]
        found.append([type(step).__name__, asdict(step), *([version] if version > 1 else [])])
    return found
