"""When the records at the beginning of a fetched buffer were written, from the batch header alone."""

from __future__ import annotations

import struct

from ferry.wire.batch import HEADER, HEADER_BYTES

_MAGIC_AT = 16
_V1_TIMESTAMP = struct.Struct(">q")
_V1_TIMESTAMP_AT = 18
_LOG_APPEND_TIME = 0x08
_DELETE_HORIZON = 0x40


def first_timestamp(buffer: bytes | memoryview, *, appended: bool = False) -> int | None:
    """Return the timestamp (ms) of a buffer's first record; the buffer may end after the header.

    It is the batch's largest timestamp where the header does not hold the first one's (log append time, delete
    horizon). None when there is none: too little was fetched, format v0, or the producer set no timestamp. `appended`:
    None also where it is the producer's (CreateTime), or the format is v1.
    """
    magic = buffer[_MAGIC_AT] if len(buffer) > _MAGIC_AT else -1
    if magic == 1 and not appended and len(buffer) >= _V1_TIMESTAMP_AT + _V1_TIMESTAMP.size:
        found: int = _V1_TIMESTAMP.unpack_from(buffer, _V1_TIMESTAMP_AT)[0]
    elif magic == 2 and len(buffer) >= HEADER_BYTES:
        header = HEADER.unpack_from(buffer)
        attributes, base, largest = header[5], header[7], header[8]
        if appended and not attributes & _LOG_APPEND_TIME:
            return None
        # A copy may have a delete horizon for a base without that bit: then the base is above the largest.
        found = largest if attributes & (_LOG_APPEND_TIME | _DELETE_HORIZON) else min(base, largest)
    else:
        return None
    return found if found >= 0 else None
