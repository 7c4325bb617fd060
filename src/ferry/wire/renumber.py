"""Records of format v2 with new offset deltas, for a batch that lost records, is cut, or gets another base.

A record is `length varint | attributes i8 | timestampDelta varlong | offsetDelta varint | key, value, headers` (Kafka's
`DefaultRecord`, KIP-98); numbers are zigzag-coded varints. Only the offset delta depends on the neighbours of a record.
So keys, values and headers are never opened. A delta is changed in place, and the bytes around it move only where its
width changes. Timestamps are ms.
"""

from __future__ import annotations

from typing import NamedTuple

from ferry.wire.codecs import Buffer, Malformed
from ferry.wire.varints import read_unsigned, varint

LOWEST, HIGHEST = -(2**63), 2**63 - 1
OffsetSpan = tuple[int, int]
"""Source offset of the first record, and the number of records without a hole."""


class Renumbered(NamedTuple):
    """`records` records with offset deltas 0, 1, 2 …; `runs` have their source offsets, in order.

    Their timestamp deltas count from `base_timestamp`, which need not be the first one's.
    """

    payload: Buffer
    records: int
    runs: list[OffsetSpan]
    base_timestamp: int
    first_timestamp: int
    max_timestamp: int


def renumbered(  # noqa: C901, PLR0912, PLR0915  # one loop over all records: calls in it would double what it costs
    records: bytearray,
    count: int,
    *,
    base: int,
    base_timestamp: int,
    size: int | None = None,
    first: int = LOWEST,
    end: int = HIGHEST,
    stamp: int | None = None,
) -> Renumbered:
    """Return the `count` records without those before source offset `first` and from `end` on.

    They are the first `size` bytes (None: all) of `records`, which is used up: the payload may be a view of it. The
    deltas count from `base` and `base_timestamp`. With a `stamp` it becomes the timestamp of all. Raises Malformed when
    the bytes are not `count` records with rising offsets.
    """
    out: list[Buffer] = []
    runs: list[OffsetSpan] = []
    size = len(records) if size is None else size
    view = memoryview(records)
    at = copied = kept = 0  # bytes read, bytes passed on, records kept
    cut = size  # where the records from `end` on begin
    run_start = run_count = 0
    previous, first_timestamp, max_timestamp = -1, LOWEST, LOWEST
    last_delta = -1  # no varint: the first record's is always read
    skipped, behind_end = first - base, end - base
    try:
        for _ in range(count):
            begin = at
            # Varints of one and two bytes, which nearly all are, are read here; the others by a call.
            length = records[at]
            at += 1
            if length & 0x80:
                more = records[at]
                at += 1
                if more & 0x80:
                    length, at = read_unsigned(records, begin)
                else:
                    length += (more - 1) << 7
            body = at
            at += length >> 1
            delta = records[body + 1]
            place = body + 2
            if delta & 0x80:
                more = records[place]
                place += 1
                if more & 0x80:
                    delta, place = read_unsigned(records, body + 1)
                else:
                    delta += (more - 1) << 7
            offset = records[place]
            behind = place + 1
            if offset & 0x80:
                more = records[behind]
                behind += 1
                if more & 0x80:
                    offset, behind = read_unsigned(records, place)
                else:
                    offset += (more - 1) << 7
            if offset & 1 or offset >> 1 <= previous or behind > at:
                raise Malformed(f"its record {offset >> 1} does not follow record {previous}")
            previous = offset = offset >> 1
            if not skipped <= offset < behind_end:
                if offset < skipped:
                    copied = at
                elif begin < cut:
                    cut = begin
                continue
            if delta != last_delta:
                last_delta = delta
                time = base_timestamp + ((delta >> 1) ^ -(delta & 1))
                if not LOWEST <= time <= HIGHEST:  # Java's arithmetic overflows
                    time = (time - LOWEST) % 2**64 + LOWEST
                if time > max_timestamp:
                    max_timestamp = time
                if not kept:
                    first_timestamp = time
            if offset != run_start + run_count:
                if run_count:
                    runs.append((base + run_start, run_count))
                run_start, run_count = offset, 0
            run_count += 1
            if offset != kept or stamp is not None:
                number = kept << 1
                if (
                    stamp is None
                    and number >> 7 * (behind - place) == 0
                    and (behind - place == 1 or number >> 7 * (behind - place - 1))
                ):
                    while number > 0x7F:
                        records[place] = number & 0x7F | 0x80
                        place += 1
                        number >>= 7
                    records[place] = number
                else:
                    head = records[body : body + 1]
                    head += b"\0" if stamp is not None else view[body + 1 : place]
                    head += varint(number)
                    out.append(view[copied:begin])
                    out.append(varint((len(head) + at - behind) << 1))
                    out.append(head)
                    copied = behind
            kept += 1
    except IndexError as error:
        raise Malformed("its records end too early") from error
    if at != size:
        raise Malformed(f"its {count} records have {at} bytes of {size}")
    if run_count:
        runs.append((base + run_start, run_count))
    out.append(view[copied:cut])
    return Renumbered(
        out[0] if len(out) == 1 else b"".join(out),
        kept,
        runs,
        base_timestamp if stamp is None else stamp,
        first_timestamp if stamp is None else stamp,
        max_timestamp if stamp is None else stamp,
    )


def boundaries(records: Buffer, count: int) -> list[int]:
    """Return where each of the records begins, and the end of the last."""
    found, at = [0], 0
    for _ in range(count):
        length, at = read_unsigned(records, at)
        at += length >> 1
        found.append(at)
    return found
