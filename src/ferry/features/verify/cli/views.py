"""How `ferry verify` shows its result: differences, records of both sides, and what was not compared."""

from __future__ import annotations

from collections.abc import Iterator

from ferry.cli.output import echo, print_table
from ferry.model import OWN_READER, Difference, Range, Verified
from ferry.wire.legacy import NO_TIMESTAMP
from ferry.words import count_of, size, to_the_ms

SHOWN_RECORDS = 3
"""Records of each side of a difference that the table shows; JSON has all that were kept."""


def print_verified(result: Verified) -> None:
    """Print differences, records of both sides, what could not be compared, and the sum."""
    print_table(
        ["#", "topic", "partition", "source offsets", "kind", "target", "target offsets"],
        (
            [
                number,
                one.source.topic,
                one.source.partition,
                _range(one.source_range),
                one.kind,
                one.target,
                _range(one.target_range),
            ]
            for number, one in enumerate(result.differences, 1)
        ),
        right=["#", "partition"],
        omit=True,
    )
    rows = list(_records(result.differences))
    columns = ["#", "side", "offset", "timestamp", "key", "value", "headers"]
    print_table(columns, rows, right=["#", "offset"], omit=True)
    if result.more:
        echo(f"and {count_of(result.more, 'further difference')}")
    for left in result.not_compared:
        echo(f"not compared: {left.message} [{left.why}]")
    for begin in result.begins:
        if not begin.is_whole:
            echo(begin.sentence)
    if result.begins and result.is_whole:
        echo("receipts and gaps cover each partition from the beginning of its log")
    if result.identical is not None:
        echo(f"{count_of(result.identical, 'record')} compared with the record at the same offset of the target")
    for note in result.notes:
        echo(f"note: {note}")
    if result.sample is not None:
        echo(f"a sample: one of {result.sample} segments of each partition, --seed {result.seed}")
    echo(_sum(result))


def _sum(result: Verified) -> str:
    if result.differences:
        verdict = count_of(len(result.differences) + result.more, "difference")
    elif result.is_nothing:
        verdict = "nothing to compare, so nothing differs and nothing is proven"
    elif result.is_complete:
        verdict = "equal" if result.is_whole else "equal as far as receipts go, which is not all of the log"
    else:
        verdict = "what was compared is equal, not all was"
    by = "" if result.reader == OWN_READER else f" by {result.reader}"
    return (
        f"flow {result.flow}: {verdict}; {count_of(result.partitions, 'partition')}, "
        f"{count_of(result.records, 'record')}, {size(result.bytes)} read of both{by} in {result.seconds:.1f} s"
    )


def _records(differences: tuple[Difference, ...]) -> Iterator[list[object]]:
    for number, one in enumerate(differences, 1):
        for side, records in (("source", one.source_records), ("target", one.target_records)):
            for record in records[:SHOWN_RECORDS]:
                yield [
                    number,
                    side,
                    record.offset,
                    None if record.timestamp_ms == NO_TIMESTAMP else to_the_ms(record.timestamp_ms),
                    _field(record.key_size, record.key_digest, record.key_text),
                    _field(record.value_size, record.value_digest, record.value_text),
                    _field(record.headers_size, record.headers_digest, record.headers_text),
                ]


def _field(count: int | None, digest: str, text: str) -> str:
    if count is None:
        return "null"
    return f'"{text}"' if text else f"{size(count)} {digest}"


def _range(part: Range) -> str:
    return f"[{part[0]}, {part[1]})" if part[0] < part[1] else f"before {part[0]}"
