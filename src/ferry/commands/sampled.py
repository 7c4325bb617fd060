"""The answer of `ferry plan --sample`: records before and after their transforms."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ferry.cli.output import Form, echo, print_answer, print_error, print_table
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.model import Content, Witness
from ferry.plan.rules.record_sample import witnesses
from ferry.words import count_of

if TYPE_CHECKING:
    from ferry.features.records.spark.sample import Pair, Sample, Side

_WHAT = {
    "left out": "left out",
    "poison": "poison",
    "not listed": "for topics that are not listed",
    "broken": "at which it breaks off",
    "changed": "changed",
    "same": "as it is",
}


def show_sample(flow: FlowConfig, found: Sequence[Sample], *, values: bool, form: Form) -> int:
    """Print the samples, and each transform that breaks as a sentence on standard error; return the exit code.

    It is 2 when one breaks, else 1 when a run would refuse one of the records. If the only sample has an error, that is
    raised.
    """
    see = _Seer(values=values)
    if len(found) == 1 and found[0].error is not None:
        raise found[0].error
    print_answer(
        lambda: {"flow": str(flow.flow), "samples": [_sample_json(one, see) for one in found]},
        lambda: _print_all(found, see),
        form=form,
    )
    sys.stdout.flush()
    troubles = list(dict.fromkeys(why for one in found if (why := _trouble(one, values=values)) is not None))
    for why in troubles:
        print_error("BadInput", why, as_json=False)
    if troubles:
        return BadInput.exit_code
    return 1 if any(_stops(one, pair) for one in found for pair in one.pairs) else 0


def _stops(one: Sample, pair: Pair) -> bool:
    """Return whether a run would stop at the record."""
    what = _what(one, pair)
    return what == "not listed" or (what == "poison" and one.transform.poison == "fail")


def _trouble(one: Sample, *, values: bool) -> str | None:
    """Return why a transform cannot be carried out, at all or at a record."""
    if one.error is not None:
        return str(one.error)
    first = next((pair for pair in one.pairs if pair.broken is not None), None)
    if first is None:
        return None
    others = sum(pair.broken is not None for pair in one.pairs) - 1
    more = f", and {count_of(others, 'more record')} of it" if others else ""
    hint = "" if values else "; --show-values shows the rest, which may have values of records"
    return (
        f"ferry.transform.{one.transform.name} breaks off at the record at offset {first.offset} of"
        f" {one.topic}-{first.partition} ({first.broken}){more}; leave such out by WHERE, or use a function that"
        f" answers null, as try_cast{hint}"
    )


class _Seer:
    """What may be shown of a record; one secret for all, so that equal digests mean equal bytes."""

    def __init__(self, *, values: bool) -> None:
        self._see = witnesses(secrets.token_bytes(16), values=values)

    def __call__(self, pair: Pair, side: Side) -> Witness:
        headers = b", ".join(name.encode() + (b"" if value is None else b"=" + value) for name, value in side.headers)
        content = Content(offset=pair.offset, timestamp=side.timestamp, key=side.key, value=side.value, headers=headers)
        return self._see(content)


def _what(one: Sample, pair: Pair) -> str:
    if pair.broken is not None:
        return "broken"
    if pair.poison:
        return "poison"
    if pair.after is None:
        return "left out"
    listed = one.transform.targets_of(one.topic or "", one.named or "")
    if listed and pair.after.topic not in listed:
        return "not listed"
    before, after = pair.before, pair.after
    same = (after.key, after.value, after.headers, after.timestamp) == (
        before.key, before.value, before.headers, before.timestamp,
    )  # fmt: skip
    return "same" if same and after.topic == one.named else "changed"


def _sample_json(one: Sample, see: _Seer) -> dict[str, Any]:
    return {
        "transform": one.transform.name,
        "digest": one.digest or None,
        "error": None if one.error is None else str(one.error),
        "topic": one.topic,
        "target": one.target,
        "partitions": one.transform.partitions,
        "poison": one.transform.poison.value,
        "records": [
            {
                "partition": pair.partition,
                "offset": pair.offset,
                "what": _what(one, pair),
                "poison": pair.poison,
                "broken": pair.broken,
                "before": _side_json(pair, pair.before, see),
                "after": None if pair.after is None else _side_json(pair, pair.after, see),
            }
            for pair in one.pairs
        ],
    }


def _side_json(pair: Pair, side: Side, see: _Seer) -> dict[str, Any]:
    shown = see(pair, side)
    body: dict[str, Any] = {
        "topic": side.topic,
        "timestamp_ms": shown.timestamp_ms,
        "key_bytes": shown.key_size,
        "key_digest": shown.key_digest or None,
        "value_bytes": shown.value_size,
        "value_digest": shown.value_digest or None,
        "headers": len(side.headers),
        "headers_digest": shown.headers_digest,
    }
    if shown.key_text or shown.value_text or shown.headers_text:
        body |= {"key": shown.key_text, "value": shown.value_text, "headers_text": shown.headers_text}
    return body


def _print_all(found: Sequence[Sample], see: _Seer) -> None:
    for one in found:
        if one.error is None:
            _print(one, see)


def _print(one: Sample, see: _Seer) -> None:
    name = one.transform.name
    if one.topic is None:
        echo(f"transform {name}: understood; no topic of the source that the flow copies is named by its topics")
        return
    if not one.pairs:
        echo(f"transform {name} of {one.topic}: understood; the topic has no records at its end")
        return
    counts = [sum(_what(one, pair) == kind for pair in one.pairs) for kind in _WHAT]
    told = ", ".join(f"{count} {text}" for count, text in zip(counts, _WHAT.values(), strict=True) if count)
    echo(f"transform {name} of {one.topic}, the last {count_of(len(one.pairs), 'record')}: {told}")
    columns = ["partition", "offset", "", "topic", "key", "value", "headers"]
    print_table(columns, _rows(one, see), right=["partition", "offset"])


def _rows(one: Sample, see: _Seer) -> Iterator[list[object]]:
    for pair in one.pairs:
        yield [pair.partition, pair.offset, "before", pair.before.topic, *_fields(pair, pair.before, see)]
        what = _what(one, pair)
        if what in ("changed", "not listed") and pair.after is not None:
            name = "after" if what == "changed" else what
            yield ["", "", name, pair.after.topic, *_fields(pair, pair.after, see)]
        elif what == "poison":
            yield ["", "", f"poison, {one.transform.poison}", pair.poison or "", "", "", ""]
        elif what == "broken":
            yield ["", "", "breaks off", pair.broken or "", "", "", ""]
        else:
            yield ["", "", "after", _WHAT[what], "", "", ""]


def _fields(pair: Pair, side: Side, see: _Seer) -> list[str]:
    shown = see(pair, side)
    return [
        _field(shown.key_size, shown.key_digest, shown.key_text),
        _field(shown.value_size, shown.value_digest, shown.value_text),
        _field(shown.headers_size, shown.headers_digest, shown.headers_text) if side.headers else "none",
    ]


def _field(count: int | None, digest: str, text: str) -> str:
    if count is None:
        return "null"
    return text or f"{count} B {digest}"
