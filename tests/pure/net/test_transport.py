"""The parts of kafka-python's wire that Ferry writes itself, against kafka-python's own."""

from __future__ import annotations

import logging
import random
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from kafka.errors import KafkaProtocolError
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from ferry.kafka.connect import frames, transport
from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.connect.frames import produce_request
from ferry.kafka.connect.transport import Transport
from tests.pure.net import hostile_answers
from tests.pure.wire.hostile import flipped
from tests.tiers import PATIENCE, examples

TOPIC_ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
SIZES = (0, 1, 126, 127, 128, 16_382, 16_383, 16_384, 70_000, 2_100_000)


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("transactional_id", ["ferry.a->b.live.0", None])
def test_a_produce_request_is_encoded_as_kafka_python_does(version: int, transactional_id: str | None) -> None:
    records = {index: bytes([index]) * size for index, size in enumerate(SIZES)}
    part = ProduceRequest.TopicProduceData.PartitionProduceData
    parts = [part(index=index, records=content) for index, content in records.items()]
    topic = ProduceRequest.TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=parts)
    theirs = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=[topic, topic])
    topics = [("orders", TOPIC_ID, list(records.items()))] * 2
    ours = produce_request(transactional_id, topics, max_version=None)
    for request in (theirs, ours):
        request.API_VERSION = version
        request.with_header(correlation_id=7, client_id="ferry")
    assert b"".join(frames._produce_pieces(ours)) == bytes(theirs.encode(framed=True, header=True))


class Parser:
    """Takes any frame up to 1 MB."""

    def check_size(self, size: int) -> None:
        assert 0 <= size <= 1_000_000


class Connection:
    """What a transport hands its frames to."""

    parser = Parser()


@pytest.fixture
def wire() -> Iterator[tuple[Transport, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    made = Transport(None, near)
    made._protocol = Connection()
    yield made, far
    near.close()
    far.close()


@pytest.mark.parametrize("piece", [1, 3, 1000, 65_536, 90_000, 1_000_000])
def test_frames_come_whole_however_their_bytes_arrive(wire: tuple[Transport, socket.socket], piece: int) -> None:
    made, far = wire
    sizes = [0, 5, 3, 200_000, 65_532, 65_533, 1, 70_000, 12] if piece > 3 else [0, 5, 3, 700, 1]
    frames = [bytes([number]) * size for number, size in enumerate(sizes)]
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    found: list[Any] = []
    for at in range(0, len(stream), piece):
        waiting = memoryview(stream)[at : at + piece]
        while waiting:
            waiting = waiting[far.send(waiting[:50_000]) :]
            received, _, error = made._receive()
            assert error is None
            found += received
    while len(found) < len(frames):
        received, _, error = made._receive()
        assert error is None
        found += received
    assert found == frames


def test_a_long_frame_gets_its_memory_as_it_comes(
    wire: tuple[Transport, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four bytes that say 2 GB take no 2 GB."""
    monkeypatch.setattr(transport, "FIRST_BYTES", 1 << 17)
    made, far = wire
    content = random.Random(3).randbytes(900_000)
    far.sendall(len(content).to_bytes(4, "big") + content[:100])
    assert made._receive()[0] == []
    assert made._frame is not None
    assert len(made._frame) == 1 << 17
    found: list[Any] = []
    for at in range(100, len(content), 40_000):
        far.sendall(content[at : at + 40_000])
        found += made._receive()[0]
    assert found == [content]
    assert made._frame is None


def test_an_answer_that_cannot_be_read_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    request = hostile_answers.asked(MetadataRequest, 9)
    with caplog.at_level(logging.DEBUG, logger="kafka"), pytest.raises(KafkaProtocolError) as found:
        hostile_answers.read(request, b"\0\0\0\1\0\0\0\0\0\x7f" + b"s3cret" * 2)
    assert "s3cret" not in caplog.text
    assert "s3cret" not in str(found.value)


@pytest.mark.parametrize("name", [name for name, _ in hostile_answers.requests()])
def test_an_answer_that_is_none_ends_the_connection_and_nothing_else(name: str) -> None:
    rng, kind = random.Random(name), dict(hostile_answers.requests())[name]
    for version in range(kind.min_version, kind.max_version + 1):
        request = hostile_answers.asked(kind, version)
        for _ in range(examples(20)):
            good = hostile_answers.made_up(request, rng)
            if name != "ApiVersionsRequest":  # kafka-python does not write those as it reads them
                hostile_answers.read(request, good)
            for data in (flipped(good, rng), good[: rng.randrange(len(good))], bytes([*good[:4], *[255] * 40])):
                with suppress(*hostile_answers.DECLARED):
                    hostile_answers.read(request, data)


def test_a_list_that_may_not_be_null_is_no_answer() -> None:
    request = hostile_answers.asked(MetadataRequest, 1)
    with pytest.raises(KafkaProtocolError):
        hostile_answers.read(request, b"\0\0\0\1" + b"\xff\xff\xff\xff" + b"\0\0\0\1" + b"\xff\xff\xff\xff")


def test_a_closed_connection_still_hands_over_what_arrived(wire: tuple[Transport, socket.socket]) -> None:
    made, far = wire
    far.sendall(b"\0\0\0\2ab\0\0")
    far.close()
    frames, _, error = made._receive()
    if error is None:
        more, _, error = made._receive()
        frames += more
    assert frames == [b"ab"]
    assert "disconnected" in str(error)


class Lost:
    """A connection that remembers how it was lost."""

    def __init__(self) -> None:
        self.errors: list[BaseException | None] = []

    def connection_lost(self, error: BaseException | None) -> None:
        self.errors.append(error)


@pytest.fixture
def sending() -> Iterator[tuple[Transport, socket.socket, Lost, Any]]:
    loop = event_loop()
    near, far = socket.socketpair()
    near.setblocking(False)
    far.settimeout(10 * PATIENCE)
    made, lost = Transport(loop, near, host="broker"), Lost()
    made.set_protocol(lost)
    yield made, far, lost, loop
    loop.close()
    near.close()
    far.close()


def received(sock: socket.socket) -> bytes:
    """All until the end."""
    return b"".join(iter(lambda: sock.recv(1 << 16), b""))


def test_what_waits_is_sent_before_a_connection_is_closed(sending: tuple[Transport, socket.socket, Lost, Any]) -> None:
    made, far, lost, loop = sending
    pieces = [bytes([number]) * (number * 9_000) for number in range(40)]  # an empty one, too; more than a socket takes
    made.write(pieces)
    made.write(b"the end")
    made.close()
    assert lost.errors == []
    with pytest.raises(RuntimeError):
        made.write(b"more")
    with ThreadPoolExecutor(1) as other:
        found = other.submit(received, far)
        while not lost.errors:
            loop.poll(timeout_ms=100)
        assert found.result(10 * PATIENCE) == b"".join(pieces) + b"the end"
    assert lost.errors == [None]
    assert made.get_protocol() is None
    assert str(made) == "<Transport [none] (closed)>"


def test_an_aborted_connection_sends_no_more_and_says_why(sending: tuple[Transport, socket.socket, Lost, Any]) -> None:
    made, far, lost, loop = sending
    error = ConnectionError("why")
    made.write(b"never sent")
    made.abort(error)
    made.abort(ConnectionError("again"))
    made.close()
    loop.poll(timeout_ms=10)
    assert lost.errors == [error]
    assert received(far) == b""


def test_a_peer_that_is_gone_ends_the_connection(sending: tuple[Transport, socket.socket, Lost, Any]) -> None:
    made, far, lost, loop = sending
    far.close()
    made.write(b"to nobody")
    while not lost.errors:
        loop.poll(timeout_ms=100)
    (error,) = lost.errors
    assert "Broken pipe" in str(error)
