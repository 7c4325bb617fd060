"""The JSON answer of `ferry plan --sample`: a contract, described in docs/json.md with a schema."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import enum, filled, many, optional, typed
from ferry.config.flow.transforms import Poison
from ferry.features.records.rules.sample import Became, Pair, Sample, Side
from ferry.model import RecordContent, RecordSample
from ferry.plan.rules.record_sample import record_samples


class Seer:
    """What may be shown of a record; one secret for all, so that equal digests mean equal bytes."""

    def __init__(self, *, values: bool) -> None:
        """Choose whether values are shown, or only their sizes and digests."""
        self._see = record_samples(secrets.token_bytes(16), values=values)

    def __call__(self, pair: Pair, side: Side) -> RecordSample:
        """Return what may be shown of one side of a record."""
        headers = b", ".join(name.encode() + (b"" if value is None else b"=" + value) for name, value in side.headers)
        content = RecordContent(
            offset=pair.offset, timestamp=side.timestamp, key=side.key, value=side.value, headers=headers
        )
        return self._see(content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One side of a record, with what may be shown of it."""

    side: Side
    shown: RecordSample


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """A record, with what may be shown of its two sides."""

    pair: Pair
    what: Became
    before: _Seen
    after: _Seen | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A sample, with what may be shown of its records."""

    sample: Sample
    records: tuple[_Record, ...]


def _without_values(seen: _Seen) -> bool:
    return not (seen.shown.key_text or seen.shown.value_text or seen.shown.headers_text)


_SIDE = Form(
    _Seen,
    F("topic", "side.topic", says="of the source before, of the target after"),
    F("timestamp_ms", "shown.timestamp_ms", least=None),
    F("key_bytes", "shown.key_size", says="null: none"),
    F("key_digest", "shown.key_digest", filled(""), says="equal within one answer where the bytes are"),
    F("value_bytes", "shown.value_size"),
    F("value_digest", "shown.value_digest", filled("")),
    F("headers", lambda seen: len(seen.side.headers), typed(int), says="how many"),
    F("headers_digest", "shown.headers_digest"),
    F("key", "shown.key_text", omit=_without_values, says="with --show-values: its beginning"),
    F("value", "shown.value_text", omit=_without_values),
    F("headers_text", "shown.headers_text", omit=_without_values),
    name="side",
)

_RECORD = Form(
    _Record,
    F("partition", "pair.partition"),
    F("offset", "pair.offset"),
    F(
        "what",
        kind=enum(Became),
        says="not listed: it goes to a topic that the transform's targets do not have, and a run would stop before it; "
        "broken: the transform breaks off there",
    ),
    F("poison", "pair.poison", says="why the transform cannot be applied"),
    F("broken", "pair.broken", says="why the transform breaks off there"),
    F("before", kind=_SIDE.kind),
    F("after", kind=optional(_SIDE.kind)),
    name="record",
)

SAMPLE = Form(
    _Shown,
    F("transform", "sample.transform.name"),
    F(
        "digest",
        "sample.digest",
        filled(""),
        says="of all that decides what a record becomes, Spark's version among it; null with an error",
    ),
    F(
        "error",
        lambda one: None if one.sample.error is None else str(one.sample.error),
        typed(str | None),
        says="why the transform cannot be carried out at all; there are no records then",
    ),
    F("topic", "sample.topic", says="null: no topic of the source is named by it"),
    F("target", "sample.target", says="as the policy names it"),
    F("partitions", "sample.transform.partitions", says="of the target; null: as many as the source has"),
    F("poison", "sample.transform.poison", enum(Poison)),
    F("records", kind=many(_RECORD.kind)),
    name="sample",
)
"""One transform, with some of the records that it changes."""


def sample_json(one: Sample, see: Seer) -> Json:
    """Return one sample, with what `see` shows of its records."""

    def seen(pair: Pair, side: Side) -> _Seen:
        return _Seen(side=side, shown=see(pair, side))

    records = tuple(
        _Record(
            pair=pair,
            what=one.became(pair),
            before=seen(pair, pair.before),
            after=None if pair.after is None else seen(pair, pair.after),
        )
        for pair in one.pairs
    )
    return SAMPLE.dump(_Shown(sample=one, records=records))
