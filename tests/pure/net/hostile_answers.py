"""Answers of brokers to each request that Ferry sends, in each version: made up by kafka-python's schemas, and read."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafka.errors import KafkaProtocolError
from kafka.protocol import admin, consumer, metadata, producer, sasl
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.parser import KafkaProtocol

from ferry.kafka.connect.frames import Frames
from ferry.kafka.fetch.requests import fetched

DECLARED = (KafkaProtocolError,)
"""What a connection is closed by, as by one that broke."""

_NET = Path(__file__).parents[3] / "src" / "ferry"
_VALUES: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda rng: rng.random() < 0.5,
    "string": lambda rng: rng.choice(["", "a", "orders", "\N{SNOWMAN}"]),
    "bytes": lambda rng: rng.randbytes(rng.randrange(20)),
    "records": lambda rng: rng.randbytes(rng.randrange(80)),
    "uuid": lambda rng: uuid.UUID(int=rng.getrandbits(128)),
    "float64": random.Random.random,
    "bitfield": lambda _: {1, 2},
}


@cache
def requests() -> tuple[tuple[str, Any], ...]:
    """Name and class of every request that a module of Ferry names."""
    named = {
        name
        for file in _NET.rglob("*.py")
        if "kafka.protocol" in (text := file.read_text())
        for name in re.findall(r"\b[A-Z]\w+Request\b", text)
    }
    modules = (admin, consumer, metadata, producer, sasl)
    found = {name: getattr(module, name) for module in modules for name in named if hasattr(module, name)}
    return tuple(sorted((name, one) for name, one in found.items() if hasattr(one, "API_KEY")))


def asked(kind: Any, version: int) -> Any:
    """A request as it was sent."""
    request = kind()
    request.API_VERSION = version
    request.with_header(correlation_id=1, client_id="f")
    return request


def made_up(request: Any, rng: random.Random) -> bytes:
    """An answer to it that a broker might give."""
    kind, version = request.header.get_response_class(), int(request.API_VERSION)
    fields = vars(_container(kind._struct, version, rng))
    answer = kind(version=version, **{name: one for name, one in fields.items() if "tags" not in name})
    answer.with_header(correlation_id=1)
    return bytes(answer.encode(header=True))


def read(request: Any, data: bytes) -> None:
    """Read an answer as a connection does, and what a fetch has of its partitions; raises DECLARED."""
    frames = Frames(KafkaProtocol(client_id="f"), "f", 1 << 30)
    frames.in_flight_requests.append(request.header)
    ((_, answer),) = frames.receive_bytes([bytearray(data)])
    if isinstance(request, FetchRequest):
        list(fetched(request, answer))


def _container(field: Any, version: int, rng: random.Random) -> SimpleNamespace:
    found = {one.name: _value(one, version, rng) for one in field.fields.values() if one.for_version_q(version)}
    return SimpleNamespace(**found, tags=None, unknown_tags=None)


def _value(field: Any, version: int, rng: random.Random) -> Any:
    if field.nullable_for_version_q(version) and rng.random() < 0.3:
        return None
    kind = str(field._json["type"])
    if field.is_struct_array():
        return [_container(field, version, rng) for _ in range(rng.randrange(3))]
    if field.is_struct():
        return _container(field, version, rng)
    if kind.startswith("[]"):
        return [_simple(kind[2:], rng) for _ in range(rng.randrange(4))]
    return _simple(kind, rng)


def _simple(kind: str, rng: random.Random) -> Any:
    if kind in _VALUES:
        return _VALUES[kind](rng)
    bits = int(kind.removeprefix("u").removeprefix("int"))
    return rng.randrange(1 << bits - 1)
