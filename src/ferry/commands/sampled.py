"""The answer of `ferry plan --sample`: records before and after their transforms."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from ferry.cli.output import Form, echo, print_answer, print_error, print_table
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import Poison
from ferry.errors import BadInput
from ferry.features.records.cli.forms import Seer, sample_json
from ferry.features.records.rules.sample import Became, Pair, Sample, Side
from ferry.words import count_of

_WHAT = {
    Became.LEFT_OUT: "left out",
    Became.POISON: "poison",
    Became.NOT_LISTED: "for topics that are not listed",
    Became.BROKEN: "at which it breaks off",
    Became.CHANGED: "changed",
    Became.SAME: "as it is",
}


def show_sample(flow: FlowConfig, found: Sequence[Sample], *, values: bool, form: Form) -> int:
    """Print the samples, and each transform that breaks as a sentence on standard error; return the exit code.

    It is 2 when one breaks, else 1 when a run would refuse one of the records. If the only sample has an error, that is
    raised.
    """
    see = Seer(values=values)
    if len(found) == 1 and found[0].error is not None:
        raise found[0].error
    print_answer(
        lambda: {"flow": str(flow.flow), "samples": [sample_json(one, see) for one in found]},
        lambda: _print_all(found, see),
        form=form,
    )
    sys.stdout.flush()
    troubles = list(dict.fromkeys(why for one in found if (why := _trouble(one, values=values)) is not None))
    for why in troubles:
        print_error(why)
    if troubles:
        return BadInput.exit_code
    return 1 if any(_stops(one, pair) for one in found for pair in one.pairs) else 0


def _stops(one: Sample, pair: Pair) -> bool:
    """Return whether a run would stop at the record."""
    what = one.became(pair)
    return what is Became.NOT_LISTED or (what is Became.POISON and one.transform.poison is Poison.FAIL)


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


def _print_all(found: Sequence[Sample], see: Seer) -> None:
    for one in found:
        if one.error is None:
            _print(one, see)


def _print(one: Sample, see: Seer) -> None:
    name = one.transform.name
    if one.topic is None:
        echo(f"transform {name}: understood; no topic of the source that the flow copies is named by its topics")
        return
    if not one.pairs:
        echo(f"transform {name} of {one.topic}: understood; the topic has no records at its end")
        return
    counts = [sum(one.became(pair) is kind for pair in one.pairs) for kind in _WHAT]
    counted = ", ".join(f"{count} {text}" for count, text in zip(counts, _WHAT.values(), strict=True) if count)
    echo(f"transform {name} of {one.topic}, the last {count_of(len(one.pairs), 'record')}: {counted}")
    columns = ["partition", "offset", "", "topic", "key", "value", "headers"]
    print_table(columns, _rows(one, see), right=["partition", "offset"])


def _rows(one: Sample, see: Seer) -> Iterator[list[object]]:
    for pair in one.pairs:
        yield [pair.partition, pair.offset, "before", pair.before.topic, *_fields(pair, pair.before, see)]
        what = one.became(pair)
        if what in (Became.CHANGED, Became.NOT_LISTED) and pair.after is not None:
            name = "after" if what is Became.CHANGED else what
            yield ["", "", name, pair.after.topic, *_fields(pair, pair.after, see)]
        elif what is Became.POISON:
            yield ["", "", f"poison, {one.transform.poison}", pair.poison or "", "", "", ""]
        elif what is Became.BROKEN:
            yield ["", "", "breaks off", pair.broken or "", "", "", ""]
        else:
            yield ["", "", "after", _WHAT[what], "", "", ""]


def _fields(pair: Pair, side: Side, see: Seer) -> list[str]:
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
