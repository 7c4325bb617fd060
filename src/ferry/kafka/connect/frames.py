"""kafka-python's parser without its copies: answers that arrive as whole frames, requests that leave in pieces.

A frame is received into a buffer, and its records are views of that buffer. Records are sent from where they are in
memory. `ferry.kafka.connect.reliance` lists what this module needs of kafka-python.
"""

from __future__ import annotations

import io
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32

from ferry.errors import MALFORMED

Piece = bytes | bytearray | memoryview

_SIZE = struct.Struct(">i")
_LENGTH = struct.Struct(">h")
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_TOPIC_IDS_SINCE = 13  # ProduceRequest, KIP-516
_CORRELATION_IDS = 1 << 31

_COPY_BELOW = 1 << 14
"""Records shorter than this are copied into the request, which is cheaper than a separate piece."""

UNREADABLE = (*MALFORMED, AssertionError, struct.error)
"""What kafka-python's decoder raises for bytes that are not an answer, in addition to its own error."""


class Frames:
    """Takes the place of kafka-python's parser in a connection."""

    def __init__(self, parser: KafkaProtocol, client_id: str, max_frame_bytes: int) -> None:
        """Continue for the parser that the connection made: with the requests that it has encoded."""
        self.in_flight_requests: deque[Any] = parser.in_flight_requests
        self.bytes_to_send: list[Piece] = parser.bytes_to_send
        self._client_id = client_id
        self._max_frame_bytes = max_frame_bytes
        self._number: int = self.in_flight_requests[-1].correlation_id if self.in_flight_requests else 0

    def check_size(self, size: int) -> None:
        """Raise InvalidReceiveError for the size of a frame that is negative or above the limit."""
        if not 0 <= size <= self._max_frame_bytes:
            most = self._max_frame_bytes
            raise kafka_errors.InvalidReceiveError(f"an answer of {size} bytes, where at most {most} are read")

    def receive_bytes(self, data: list[bytearray]) -> list[tuple[int, Any]]:
        """Decode whole frames. Raises KafkaProtocolError for one that is not an answer, whatever is in it."""
        return [self._decoded(frame) for frame in data]

    def _decoded(self, frame: bytearray) -> tuple[int, Any]:
        """Return the correlation id and the answer to the oldest request.

        The error has no bytes of the answer, which may hold anything.
        """
        if not self.in_flight_requests:
            raise kafka_errors.CorrelationIdError("an answer to no request")
        header = self.in_flight_requests.popleft()
        number: int = header.correlation_id
        kind = header.get_response_class()
        if kind is None:
            raise kafka_errors.KafkaProtocolError(f"an answer to request {header.request_api_key} cannot be read")
        try:
            reader = _Reader(frame) if header.request_api_key == FetchRequest.API_KEY else io.BytesIO(frame)
            found = kind.parse_header(reader).correlation_id
            if found != number:
                raise kafka_errors.CorrelationIdError(f"an answer to request {found}, where {number} is next")
            answer = kind.decode(reader)
            # Those of fetches have many partitions, and `ferry.kafka.fetch.requests` reads them.
            if not isinstance(answer, FetchResponse):
                _refuse_nulls(answer, answer.fields, answer.API_VERSION)
        except UNREADABLE as error:
            raise kafka_errors.KafkaProtocolError(f"an answer cannot be read: {type(error).__name__}") from error
        return number, answer

    def send_request(self, request: Any, correlation_id: int | None = None) -> int:
        """Encode and queue a request; return its correlation id."""
        if correlation_id is None:
            self._number = correlation_id = (self._number + 1) % _CORRELATION_IDS
        request.with_header(correlation_id=correlation_id, client_id=self._client_id)
        if isinstance(request, ProduceRequest) and isinstance(request.topic_data[0], tuple):
            self.bytes_to_send += _produce_pieces(request)
        else:
            self.bytes_to_send.append(request.encode(framed=True, header=True))
        if request.expect_response():
            self.in_flight_requests.append(request.header)
        return correlation_id

    def send_bytes(self) -> list[Piece]:
        """Return the pieces of all queued requests."""
        pieces, self.bytes_to_send = self.bytes_to_send, []
        return pieces


_Lists = tuple[tuple[str, bool, Any, bool], ...]
_LISTS: dict[tuple[int, int], _Lists] = {}


def _refuse_nulls(found: Any, fields: Mapping[str, Any], version: int) -> None:
    """Raise TypeError where a list of an answer is null but may not be: kafka-python reads it as None."""
    for name, nullable, inner, many in _lists(fields, version):
        value = getattr(found, name)
        if value is None:
            if not nullable:
                raise TypeError(f"{name} is null")
        elif inner is not None:
            for one in value if many else (value,):
                _refuse_nulls(one, inner.fields, version)


def _lists(fields: Mapping[str, Any], version: int) -> _Lists:
    """Return the fields of a struct that are lists or contain some.

    Each has its name, whether it may be null, its struct, and whether it is a list.
    """
    known = _LISTS.get((id(fields), version))  # schemas live as long as their modules
    if known is not None:
        return known
    found = []
    for field in fields.values():
        if field.for_version_q(version) and not field.tagged_field_q(version):
            many = field.is_array()
            inner = field if (many and field.is_struct_array()) or field.is_struct() else None
            if many or (inner is not None and _lists(inner.fields, version)):
                found.append((field.name, bool(field.nullable_for_version_q(version)), inner, many))
    known = _LISTS[id(fields), version] = tuple(found)
    return known


class _Reader:
    """A frame as the decoder reads it: what it reads are views."""

    __slots__ = ("_at", "_view")

    def __init__(self, frame: bytearray) -> None:
        self._view = memoryview(frame)
        self._at = 0

    def read(self, size: int | None = None) -> memoryview:
        start = self._at
        self._at = len(self._view) if size is None else start + size
        return self._view[start : self._at]

    def seek(self, at: int) -> None:
        self._at = at


Produced = tuple[str, Any, Sequence[tuple[int, Piece]]]
"""What is produced to one topic: its name, its id, and one batch for each of some partitions.

The id is None on brokers without topic ids.
"""


def produce_request(transactional_id: str | None, topics: Sequence[Produced], *, max_version: int | None) -> Any:
    """Make a produce request with acks from all in-sync replicas; only this module's transport can send it."""
    return ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=list(topics), max_version=max_version
    )


def _produce_pieces(request: Any) -> list[Piece]:
    """Return the frame of a `produce_request`, by the message's schema; long records are pieces of their own.

    Field by field through kafka-python, a request for small batches costs as much as all the rest of copying them.
    """
    version = request.API_VERSION
    flexible = request.flexible_version_q(version)
    count = _compact if flexible else _SIZE.pack
    tags = b"\0" if flexible else b""
    pieces: list[Piece] = []
    text = bytearray(_SIZE.size)
    text += request.encode_header(flexible=flexible)
    text += _string(request.transactional_id, flexible)
    text += _ACKS_AND_TIMEOUT.pack(request.acks, request.timeout_ms)
    text += count(len(request.topic_data))
    size = 0
    for name, topic_id, parts in request.topic_data:
        text += topic_id.bytes if version >= _TOPIC_IDS_SINCE else _string(name, flexible)
        text += count(len(parts))
        for index, records in parts:
            text += _SIZE.pack(index)
            text += count(len(records))
            if len(records) < _COPY_BELOW:
                text += records
            else:
                pieces += text, records
                size += len(text) + len(records)
                text = bytearray()
            text += tags
        text += tags
    text += tags
    pieces.append(text)
    _SIZE.pack_into(pieces[0], 0, size + len(text) - _SIZE.size)
    return pieces


def _string(value: str | None, flexible: bool) -> bytes:
    """Encode a nullable string, compact (KIP-482) or with the older two bytes of length."""
    encoded = b"" if value is None else value.encode()
    if flexible:
        return b"\0" if value is None else _compact(len(encoded)) + encoded
    return _LENGTH.pack(-1 if value is None else len(encoded)) + encoded


def _compact(length: int) -> bytes:
    """Encode a length as flexible messages write it: plus one, seven bits to a byte, the lowest first (KIP-482)."""
    rest, out = length + 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _emit_view(ctx: Any, var_name: str, indent: str, *_: object, compact: bool = False, **__: object) -> None:
    """Emit the code that decodes a `records` field as a view of the frame; kafka-python's own makes a copy of it."""
    length = ctx.next_var("ln")
    if compact:
        UnsignedVarInt32.emit_decode_from(ctx, length, indent)
        ctx.emit(indent, f"{length} -= 1")
    else:
        ctx.emit(indent, f'{length} = unpack_from(">i", data, pos)[0]')
        ctx.emit(indent, "pos += 4")
    ctx.emit(indent, f"{var_name} = None if {length} < 0 else data[pos:pos+{length}]")
    ctx.emit(indent, f"pos += max(0, {length})")


def _leave_records_in_place() -> None:
    """Give the field the code above, before kafka-python compiles its decoder."""
    partition = FetchResponse.fields["responses"].fields["partitions"]
    partition.fields["records"].emit_decode_from = _emit_view


_leave_records_in_place()


def decoded_records() -> object:
    """Decode a small answer to a fetch, and return its records: a view, unless kafka-python has its own way again."""
    partition = struct.pack(">ihqqi", 0, 0, 3, 3, -1) + struct.pack(">i3s", 3, b"abc")
    content = struct.pack(">ii", 0, 1) + struct.pack(">h1si", 1, b"t", 1) + partition
    return FetchResponse.decode(memoryview(content), version=4).responses[0].partitions[0].records
