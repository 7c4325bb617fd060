"""kafka-python's TCP transport and frames, without the copies: megabytes of batches pass through here.

The library reads 4 KiB at a time, and copies what it receives five times and what it sends twice. Here a frame is
received into a buffer, and its records are views of that buffer. Records are sent from where they are in memory.
Written against kafka-python 3.0.12, which the constraints file pins. All that depends on its internals is in this
module.
"""

# ruff: noqa: SLF001 - it replaces insides of kafka-python

from __future__ import annotations

import io
import logging
import selectors
import ssl
import struct
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.schemas.fields.codecs import Bytes, UnsignedVarInt32

from ferry.errors import MALFORMED
from ferry.kafka.connect.refusal import connection_error

Piece = bytes | bytearray | memoryview

_SIZE = struct.Struct(">i")
_LENGTH = struct.Struct(">h")
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_TOPIC_IDS_SINCE = 13  # ProduceRequest, KIP-516
_HEAD_BYTES = 1 << 16
"""Bytes read at once where a frame may begin. Small answers come whole; a large one continues in its own buffer."""

_TURN_BYTES = 4 << 20
"""Bytes received at most before other tasks get their turn."""

_COPY_BELOW = 1 << 14
"""Records shorter than this are copied into the request, which is cheaper than a separate piece."""

_PIECES_PER_CALL = 512  # Linux takes up to 1,024

_FIRST_BYTES = 64 << 20
"""Bytes that a frame gets at once when its size field asks for them; a longer frame gets more as it arrives."""

UNREADABLE = (*MALFORMED, AssertionError, struct.error)
"""What kafka-python's decoder raises for bytes that are no answer, in addition to its own error."""

_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Transport(KafkaTCPTransport):  # type: ignore[misc]  # kafka-python has no types
    """Receives whole frames, each into its own buffer; sends pieces without joining them."""

    def __init__(self, net: Any, sock: Any, host: str | None = None) -> None:
        super().__init__(net, sock, host=host)
        self._head = memoryview(bytearray(_HEAD_BYTES))
        self._head_filled = 0
        self._frame: bytearray | None = None
        self._frame_size = 0
        self._window = memoryview(b"")
        self._frame_filled = 0
        self._tls = isinstance(sock, ssl.SSLSocket)

    async def _read_from_sock(self) -> None:
        # The connection has just made its parser; nothing has been received yet.
        self._protocol.parser = Frames(self._protocol.parser)
        while self._read and not self._closed:
            await self._net.wait_read(self._sock)
            while True:
                frames, more, error = self._receive()
                if frames:
                    self.last_read = time.monotonic()
                    try:
                        self._protocol.data_received(frames)
                    except kafka_errors.KafkaProtocolError as protocol_error:
                        error = protocol_error
                if error is not None:
                    # a broker answers a refused login and disconnects at once: let the answer be processed first
                    if frames:
                        await self._net.sleep(0)
                    self.abort(error=error)
                    return
                if not more or not self._read or self._closed:
                    break
                await self._net.sleep(0)

    def _receive(self) -> tuple[list[bytearray], bool, Exception | None]:
        """Return the frames that are complete now, whether the socket may hold more, and what ended the connection."""
        frames: list[bytearray] = []
        received = 0
        try:
            while received < _TURN_BYTES:
                window = self._head[self._head_filled :] if self._frame is None else self._window[self._frame_filled :]
                count = self._sock.recv_into(window)
                if not count:
                    return frames, False, kafka_errors.KafkaConnectionError("socket disconnected")
                received += count
                if self._frame is None:
                    self._head_filled += count
                    self._split_head(frames)
                else:
                    self._frame_filled += count
                    if self._frame_filled == self._frame_size:
                        frames.append(self._frame)
                        self._frame, self._window = None, self._head[:0]
                    elif self._frame_filled == len(self._frame):
                        self._grow(self._frame)
                if count < len(window) and not self._tls:  # that was all that the socket had
                    return frames, False, None
        except _WOULD_BLOCK:
            return frames, False, None
        except kafka_errors.KafkaError as error:
            return frames, False, error
        except OSError as error:  # with TLS 1.3 the broker judges our certificate after the handshake
            return frames, False, connection_error(error)
        return frames, True, None

    def _grow(self, frame: bytearray) -> None:
        """Double the room for a long frame: its first four bytes alone do not claim all of the memory."""
        self._frame = bytearray(min(self._frame_size, 2 * len(frame)))
        self._window = memoryview(self._frame)
        self._window[: len(frame)] = frame

    def _split_head(self, frames: list[bytearray]) -> None:
        """Take whole frames out of the head. A longer frame gets its own buffer, with what has arrived of it."""
        at, filled = 0, self._head_filled
        while filled - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._head, at)
            self._protocol.parser._validate_frame_size(size)
            at += _SIZE.size
            if filled - at >= size:
                frames.append(bytearray(self._head[at : at + size]))
                at += size
                continue
            self._frame, self._frame_size = bytearray(min(size, _FIRST_BYTES)), size
            self._frame_filled = filled - at
            self._window = memoryview(self._frame)
            self._window[: self._frame_filled] = self._head[at:filled]
            at = filled
        rest = bytes(self._head[at:filled])
        self._head[: len(rest)] = rest
        self._head_filled = len(rest)

    def write(self, data: Piece | Sequence[Piece]) -> None:
        """Send the parser's output: the pieces of some requests."""
        if isinstance(data, list):
            self.writelines(data)
        else:
            super().write(data)

    def _sock_send(self) -> tuple[int, Exception | None]:
        if self._sock is None:
            return 0, kafka_errors.KafkaConnectionError("connection closed during send")
        waiting, total = self._write_buffer, 0
        try:
            while waiting:
                sent = self._send_some()
                total += sent
                while sent and sent >= len(waiting[0]):
                    sent -= len(waiting.popleft())
                if sent:
                    waiting[0] = memoryview(waiting[0])[sent:]
        except _WOULD_BLOCK:
            return total, None
        except OSError as error:
            return total, connection_error(error)
        return total, None

    def _send_some(self) -> int:
        waiting = self._write_buffer
        if self._tls or len(waiting) == 1:  # TLS has no sendmsg
            sent: int = self._sock.send(waiting[0])
        else:
            sent = self._sock.sendmsg(islice(waiting, _PIECES_PER_CALL))
        return sent


class Frames(KafkaProtocol):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's parser for answers that arrive as whole frames, and requests that leave in pieces."""

    bytes_to_send: list[Piece]

    def __init__(self, parser: KafkaProtocol) -> None:
        """Replace the parser that the connection made for itself; take over the requests that it has sent."""
        self.__dict__.update(parser.__dict__)

    def receive_bytes(self, data: list[bytearray]) -> list[tuple[int, Any]]:
        """Decode whole frames. Raises KafkaProtocolError for one that is no answer, whatever is in it."""
        return [self._decoded(frame) for frame in data]

    def _decoded(self, frame: bytearray) -> tuple[int, Any]:
        try:
            number, answer = self._process_response(self._reader(frame))
            schema = getattr(answer, "_struct", None)
            # Those of fetches have many partitions, and `ferry.kafka.fetch.requests` reads them.
            if schema is not None and not isinstance(answer, FetchResponse):
                _refuse_nulls(answer, schema, answer.API_VERSION)
        except UNREADABLE as error:
            raise kafka_errors.KafkaProtocolError(f"an answer cannot be read: {type(error).__name__}") from error
        return number, answer

    def _reader(self, frame: bytearray) -> Any:
        """Return how the decoder reads the next answer: as views if it answers a fetch, else as bytes."""
        header = self.in_flight_requests[0] if self.in_flight_requests else None
        is_fetch = getattr(header, "request_api_key", None) == FetchRequest.API_KEY
        return _Reader(frame) if is_fetch else io.BytesIO(frame)

    def send_request(self, request: Any, correlation_id: int | None = None) -> int:
        """Encode and queue a request; return its correlation id."""
        if not isinstance(request, ProduceRequest) or not isinstance(request.topic_data[0], tuple):
            found: int = super().send_request(request, correlation_id)
            return found
        number: int = self._next_correlation_id() if correlation_id is None else correlation_id
        request.with_header(correlation_id=number, client_id=self._client_id)
        self.bytes_to_send += _produce_pieces(request)
        if request.expect_response():
            self.in_flight_requests.append(request.header)
        return number

    def send_bytes(self) -> list[Piece]:
        """Return the pieces of all queued requests."""
        pieces, self.bytes_to_send = self.bytes_to_send, []
        return pieces


_Lists = tuple[tuple[str, bool, Any, bool], ...]
_LISTS: dict[tuple[int, int], _Lists] = {}


def _refuse_nulls(found: Any, schema: Any, version: int) -> None:
    """Raise TypeError where a list of an answer is null but may not be: kafka-python reads it as None."""
    for name, nullable, inner, many in _lists(schema, version):
        value = getattr(found, name)
        if value is None:
            if not nullable:
                raise TypeError(f"{name} is null")
        elif inner is not None:
            for one in value if many else (value,):
                _refuse_nulls(one, inner, version)


def _lists(schema: Any, version: int) -> _Lists:
    """Return the fields of a struct that are lists or contain some.

    Each has its name, whether it may be null, its struct, and whether it is a list.
    """
    known = _LISTS.get((id(schema), version))  # schemas live as long as their modules
    if known is not None:
        return known
    found = []
    for field in schema.fields.values():
        if field.for_version_q(version) and not field.tagged_field_q(version):
            many = field.is_array()
            inner = field if (many and field.is_struct_array()) or field.is_struct() else None
            if many or (inner is not None and _lists(inner, version)):
                found.append((field.name, bool(field.nullable_for_version_q(version)), inner, many))
    return tuple(found)


def _without_content(record: logging.LogRecord) -> bool:
    """Keep the bytes of an unreadable answer, which may hold anything, out of kafka-python's error log."""
    if isinstance(record.args, tuple):
        record.args = tuple("..." if isinstance(one, (bytes, bytearray, memoryview)) else one for one in record.args)
    return True


logging.getLogger("kafka.protocol.parser").addFilter(_without_content)


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


class _RecordsInPlace(Bytes):  # type: ignore[misc]  # kafka-python has no types
    """The codec of a `records` field whose value is a view of the frame."""

    @classmethod
    def emit_decode_from(cls, ctx: Any, var_name: str, indent: str, compact: bool = False) -> None:
        length = ctx.next_var("ln")
        if compact:
            UnsignedVarInt32.emit_decode_from(ctx, length, indent)
            ctx.emit(indent, f"{length} -= 1")
        else:
            ctx.emit(indent, f'{length} = unpack_from(">i", data, pos)[0]')
            ctx.emit(indent, "pos += 4")
        ctx.emit(indent, f"{var_name} = None if {length} < 0 else data[pos:pos+{length}]")
        ctx.emit(indent, f"pos += max(0, {length})")


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


def _leave_records_in_place() -> None:
    """Give the field the codec above, before kafka-python compiles its decoder."""
    FetchResponse._struct.fields["responses"].fields["partitions"].fields["records"]._type = _RecordsInPlace


_leave_records_in_place()


def _close_sockets_that_do_not_connect() -> None:
    """Close the socket of a refused or cancelled connection: kafka-python leaves it to the garbage collector."""
    connect = KafkaNetSocket.sock_connect

    async def sock_connect(self: Any, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await connect(self, net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise

    KafkaNetSocket.sock_connect = sock_connect


_close_sockets_that_do_not_connect()


class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's connection manager with the transport above; it remembers why connections failed.

    Without that, a bootstrap repeats a refused login until its time is over, and then does not show the reason.
    """

    last_failure: BaseException | None = None

    def get_connection(self, node_id: Any, *arguments: Any, **options: Any) -> Any:
        """Return a connection, made or being made; its failure is kept in `last_failure`."""
        connection = super().get_connection(node_id, *arguments, **options)
        if connection.initializing:
            connection.init_future.add_errback(self._remember)
        return connection

    def close_throttled(self) -> None:
        """Close the connections that a broker has paused (KIP-219); the next request opens new ones."""
        for connection in list(self._conns.values()):
            if "throttle" in connection.paused:
                connection.close()

    def _remember(self, error: BaseException) -> None:
        self.last_failure = error

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Transport:
        """Build a transport with kafka-python's steps.

        The socket of a failed or cancelled handshake is closed, its error kept.
        """
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if self.ssl_enabled:
            options = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
            secured = KafkaSSLTransport(self._net, sock, host=node.host, **options)
            sock = secured._sock
            try:
                await secured.handshake()
            except OSError as error:
                sock.close()
                raise connection_error(error) from error
            except BaseException:
                sock.close()
                raise
        return Transport(self._net, sock, host=node.host)


class Selector(selectors.DefaultSelector):
    """The system's selector, but fast when a socket is not registered: its error has no describing text."""

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        """Return the registration of a socket. Raises KeyError when there is none."""
        key: selectors.SelectorKey = self._fd_to_key[fileobj.fileno()]  # type: ignore[attr-defined]  # typeshed hides it
        return key
