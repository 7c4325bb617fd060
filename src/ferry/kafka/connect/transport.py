"""The transport of Ferry's connections, without kafka-python's copies: megabytes of batches pass through here.

kafka-python reads 4 KiB at a time, and copies what it receives five times and what it sends twice. Here a frame is
received into a buffer, and requests are sent from where they are in memory. The connection of kafka-python calls this
class as it calls its own `KafkaTCPTransport`.
"""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.selector import NetworkSelector

from ferry.kafka.connect.frames import Frames, Piece
from ferry.kafka.connect.refusal import connection_error

log = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")
_HEAD_BYTES = 1 << 16
"""Bytes read at once where a frame may begin. Small answers come whole; a large one continues in its own buffer."""

_TURN_BYTES = 4 << 20
"""Bytes received at most before other tasks get their turn."""

_PIECES_PER_CALL = 512  # Linux takes up to 1,024

FIRST_BYTES = 64 << 20
"""Bytes that a frame gets at once when its size field asks for them; a longer frame gets more as it arrives."""

_WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Transport:
    """Receives whole frames, each into its own buffer; sends pieces without joining them."""

    def __init__(self, net: NetworkSelector, sock: socket.socket, host: str | None = None) -> None:
        """Take a connected socket. `host` is the broker's name in its address, which a Kerberos login needs."""
        self.host = host
        self.last_activity = time.monotonic()
        """When bytes were last received or sent, by `time.monotonic`."""
        self._net = net
        self._sock = sock
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._protocol: Any = None
        self._closing = False
        self._reading: Any = None
        self._writing: Any = None
        self._waiting: deque[Piece] = deque()
        self._head = memoryview(bytearray(_HEAD_BYTES))
        self._head_filled = 0
        self._frame: bytearray | None = None
        self._frame_size = 0
        self._window = memoryview(b"")
        self._frame_filled = 0

    def __str__(self) -> str:
        return f"<{type(self).__name__} [{self.host_port()}]{' (closed)' if self._closing else ''}>"

    def get_protocol(self) -> Any:
        """Return the connection that this transport serves; None before `set_protocol` and after the end."""
        return self._protocol

    def set_protocol(self, protocol: Any) -> None:
        """Serve a connection of kafka-python."""
        self._protocol = protocol

    def getPeer(self) -> Any:  # noqa: N802 - kafka-python's name
        """Return the broker's address as the socket has it. Raises OSError when it is closed."""
        return self._sock.getpeername()

    def host_port(self) -> str:
        """Return the broker's address and the local port for log lines; `none` when the socket is closed."""
        try:
            host, port = self._sock.getpeername()[:2]
            return f"{host}:{port}<-{self._sock.getsockname()[1]}"
        except (OSError, ValueError):
            return "none"

    def resume_reading(self) -> None:
        """Begin to receive; kafka-python's connection calls it once."""
        if self._reading is None and not self._closing:
            self._reading = self._net.call_soon(self._read)

    async def _read(self) -> None:
        connection = self._protocol
        # The connection has just made its parser; nothing has been received yet.
        limit = connection.config["receive_message_max_bytes"]
        connection.parser = Frames(connection.parser, connection.config["client_id"], limit)
        while not self._closing:
            await self._net.wait_read(self._sock)
            while True:
                frames, more, error = self._receive()
                if frames:
                    self.last_activity = time.monotonic()
                    try:
                        connection.data_received(frames)
                    except kafka_errors.KafkaProtocolError as protocol_error:
                        error = protocol_error
                if error is not None:
                    # a broker answers a refused login and disconnects at once: let the answer be processed first
                    if frames:
                        await self._net.sleep(0)
                    self.abort(error=error)
                    return
                if not more or self._closing:
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
            self._protocol.parser.check_size(size)
            at += _SIZE.size
            if filled - at >= size:
                frames.append(bytearray(self._head[at : at + size]))
                at += size
                continue
            self._frame, self._frame_size = bytearray(min(size, FIRST_BYTES)), size
            self._frame_filled = filled - at
            self._window = memoryview(self._frame)
            self._window[: self._frame_filled] = self._head[at:filled]
            at = filled
        rest = bytes(self._head[at:filled])
        self._head[: len(rest)] = rest
        self._head_filled = len(rest)

    def write(self, data: Piece | Sequence[Piece]) -> None:
        """Send a parser's output: the pieces of some requests, or their bytes. Raises RuntimeError after the end."""
        if self._closing:
            raise RuntimeError("the transport is closed")
        if isinstance(data, (bytes, bytearray, memoryview)):
            self._waiting.append(data)
        else:
            self._waiting.extend(data)
        if self._writing is None:
            self._writing = self._net.call_soon(self._write)

    async def _write(self) -> None:
        while self._waiting:
            await self._net.wait_write(self._sock)
            sent, error = self._send()
            if error is not None:
                self.abort(error=error)
                return
            if sent:
                self.last_activity = time.monotonic()
        self._writing = None
        if self._closing:
            self._end(None)

    def _send(self) -> tuple[int, Exception | None]:
        waiting, total = self._waiting, 0
        try:
            while waiting:
                sent = self._send_some()
                total += sent
                while waiting and sent >= len(waiting[0]):
                    sent -= len(waiting.popleft())
                if sent:
                    waiting[0] = memoryview(waiting[0])[sent:]
        except _WOULD_BLOCK:
            return total, None
        except OSError as error:
            return total, connection_error(error)
        return total, None

    def _send_some(self) -> int:
        waiting = self._waiting
        if self._tls or len(waiting) == 1:  # TLS has no sendmsg
            sent: int = self._sock.send(waiting[0])
        else:
            sent = self._sock.sendmsg(islice(waiting, _PIECES_PER_CALL))
        return sent

    def close(self) -> None:
        """Receive no more, and close the socket when all that waits is sent."""
        if not self._closing:
            log.debug("%s: closing", self)
            self._closing = True
            if not self._waiting:
                self._end(None)

    def abort(self, error: BaseException | None = None) -> None:
        """Close the socket at once; what waits to be sent is dropped. `error` is passed to the connection."""
        if not self._closing:
            log.debug("%s: %s", self, error)
            self._closing = True
            self._waiting.clear()
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        protocol, self._protocol = self._protocol, None
        self._net.unregister_event(self._sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        for task in (self._reading, self._writing):
            if task is not None:
                self._net.cancel(task)
        self._reading = self._writing = None
        if protocol is not None:
            protocol.connection_lost(error)
