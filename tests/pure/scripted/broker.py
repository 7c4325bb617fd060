"""Brokers that answer Kafka's protocol, frame by frame, out of the modelled cluster of the protocol's random machine.

Clients are Ferry's own: `tests.pure.scripted.wire` puts them on these brokers below the socket, so versions, encoding,
retries and timeouts are the real ones. `tests.pure.scripted.faults` says what becomes of a request. `Brokers.asked`
lists every request that came.
"""

from __future__ import annotations

import functools
import pickle
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.data_container import DataContainer

from ferry.kafka.connect import codes
from ferry.kafka.groups import messages
from tests.pure.scripted.coordinators import Coordinators
from tests.pure.scripted.faults import Asked, At, Fault
from tests.pure.scripted.partitions import Partitions

_HEAD = struct.Struct(">hhih")
"""The kind of a request, its version and number, and how long the client's name is: -1 for none."""
_NUMBER = struct.Struct(">i")
_READS = {"ApiVersions", "Fetch", "FindCoordinator", "ListOffsets", "Metadata", "OffsetFetch"}
"""Requests that change nothing."""
_CONTROLLER = 1


class Connection(Protocol):
    """Where a request came from, and its answer goes."""

    node: int

    def deliver(self, asked: Asked, frame: bytearray, late_s: float) -> None:
        """An answer goes back, after those before it, so many seconds late."""

    def cut(self) -> None:
        """The connection is lost."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pending:
    """A request that waits to be served."""

    wire: Connection
    asked: Asked
    version: int


@dataclass(kw_only=True)
class Brokers(Coordinators, Partitions):
    """A cluster, and what becomes of requests to it."""

    faults: list[Fault] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    unaware: set[int] = field(default_factory=set)
    """Brokers that have not learned of any topic yet."""
    tarry: bool = False
    """Markers wait for `deliver_markers`."""
    gate: Callable[[Asked], bool] | None = None
    """Requests for which this holds wait in `pending`, and what comes after them on their connections."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._held: list[Callable[[], None]] = []
        self.pending: list[Pending] = []
        self.under_way: Counter[int] = Counter()
        """Produce requests that are not answered yet, by broker."""
        self.most_under_way = 0
        self.broken: list[BaseException] = []
        """What went wrong in the brokers themselves: a mistake of the test, or of this module."""

    def count(self, api: str) -> int:
        """How many requests of a kind have come."""
        return sum(one.api == api for one in self.asked)

    @property
    def counts(self) -> Counter[str]:
        """Requests by kind."""
        return Counter(one.api for one in self.asked)

    # ---- requests

    def take(self, wire: Connection, frame: bytes) -> None:
        """A frame has come; the answer goes back now, later or never."""
        if wire.node not in self.nodes:
            wire.cut()
            return
        key, version, number, client = _HEAD.unpack_from(frame)
        kind = _REQUESTS[key]
        # kafka-python reads and writes headers slowly. After the client's name, flexible ones have tags: here none.
        body = frame[_HEAD.size + max(0, client) + kind.flexible_version_q(version) :]
        request = kind.decode(body, version=version)
        asked = Asked(
            node=wire.node,
            api=kind.name.removesuffix("Request"),
            number=number,
            request=request,
            topics=self._topics(request),
        )
        self.asked.append(asked)
        if self.gate is not None and (self.gate(asked) or any(one.wire is wire for one in self.pending)):
            self.pending.append(Pending(wire=wire, asked=asked, version=version))
            return
        fault = next((one for one in self.faults if one.meets(asked)), None)
        if fault is not None and fault.held:
            self._held.append(partial(self._serve, wire, asked, version, None))
            if fault.then is not None:
                fault.then()
            return
        self._serve(wire, asked, version, fault)

    def _topics(self, request: Any) -> frozenset[str]:
        if isinstance(request, metadata.MetadataRequest) and request.topics is None:
            return frozenset(self.ids)
        topics = [
            topic
            for name in ("topics", "topic_data", "v3_and_below_topics")
            for topic in getattr(request, name, None) or ()
        ]
        if not topics:
            return frozenset()
        by_id = {value: name for name, value in self.ids.items()}
        names = {getattr(topic, field, None) for topic in topics for field in ("name", "topic")}
        names |= {by_id[topic.topic_id] for topic in topics if getattr(topic, "topic_id", None) in by_id}
        return frozenset(name for name in names if name)

    def serve(self, one: Pending, fault: Fault | None = None) -> None:
        """Carry out a request that waits; `fault` says what becomes of it, and of its answer."""
        self.pending = [other for other in self.pending if other is not one]
        self._serve(one.wire, one.asked, one.version, fault)

    def release(self) -> None:
        """Requests that were held arrive, whether or not their senders still wait."""
        held, self._held = self._held, []
        for serve in held:
            serve()

    def answered(self, asked: Asked) -> None:
        """An answer has arrived, or its connection is gone."""
        if asked.api == "Produce":
            self.under_way[asked.node] -= 1

    def _serve(self, wire: Connection, asked: Asked, version: int, fault: Fault | None) -> None:
        if asked.api == "Produce":
            self.under_way[asked.node] += 1
            self.most_under_way = max(self.most_under_way, self.under_way[asked.node])
        answer = self._answer(asked, fault)
        if not self.tarry:
            self.deliver_markers()
        if fault is not None and fault.then is not None:
            fault.then()
        if fault is not None and fault.lost:
            self.answered(asked)
            wire.cut()
            return
        has_tags = answer.flexible_version_q(version) and asked.api != "ApiVersions"  # which each client can read
        head = _NUMBER.pack(asked.number) + b"\0" * has_tags
        frame = bytearray(head + answer.encode(version=version))
        wire.deliver(asked, frame, 0.0 if fault is None else fault.late_s)

    def _answer(self, asked: Asked, fault: Fault | None) -> Any:
        handle = getattr(self, f"_{asked.api}", None)
        assert handle is not None, f"the scripted brokers know no {asked.api}"
        if fault is None or (fault.code is None and not fault.lost) or fault.applied or asked.api in _READS:
            answer = handle(asked)
        else:  # its shape only: nothing of it happens
            kept = pickle.dumps({name: getattr(self, name) for name in self.STATE})
            answer = handle(asked)
            vars(self).update(pickle.loads(kept))
        if fault is not None and fault.code is not None:
            _spoil(answer, fault)
        return answer

    def _ApiVersions(self, asked: Asked) -> Any:  # noqa: N802 - the request's name
        kind = metadata.ApiVersionsResponse
        keys = _versions(type(self))  # type: ignore[arg-type]  # mypy takes the class for an object of it
        if "metadata.version" not in self.features:
            keys = [one for one in keys if one.api_key != admin.DescribeQuorumRequest.API_KEY]
        features = [
            kind.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=0)
            for name, level in ({"transaction.version": self.version} | self.features).items()
        ]
        return kind(
            error_code=0, api_keys=keys, supported_features=[], finalized_features=features, finalized_features_epoch=1
        )

    def _DescribeQuorum(self, asked: Asked) -> Any:  # noqa: N802
        kind = admin.DescribeQuorumResponse
        part = kind.TopicData.PartitionData(
            partition_index=0,
            error_code=0,
            leader_id=self.quorum_leader,
            leader_epoch=1,
            high_watermark=1,
            current_voters=[],
            observers=[],
        )
        name = asked.request.topics[0].topic_name
        return kind(error_code=0, topics=[kind.TopicData(topic_name=name, partitions=[part])], nodes=[])

    def _Metadata(self, asked: Asked) -> Any:  # noqa: N802
        kind = metadata.MetadataResponse
        wanted = asked.request.topics
        by_id = {value: name for name, value in self.ids.items()}
        known = {} if asked.node in self.unaware else self.ids
        names = list(known) if wanted is None else [one.name or by_id.get(one.topic_id) for one in wanted]
        topics = []
        for name in names:
            if name not in known:
                topics.append(
                    kind.MetadataResponseTopic(
                        name=name, topic_id=uuid.UUID(int=0), error_code=codes.UNKNOWN_TOPIC_OR_PARTITION, partitions=[]
                    )
                )
                continue
            parts = [
                kind.MetadataResponseTopic.MetadataResponsePartition(
                    partition_index=place.partition,
                    leader_id=leader,
                    leader_epoch=self.epochs[place],
                    replica_nodes=[*self.nodes, *self.lost],
                    isr_nodes=list(self.nodes),
                )
                for place, leader in self.leaders.items()
                if place.topic == name
            ]
            topics.append(kind.MetadataResponseTopic(name=name, topic_id=self.ids[name], partitions=parts))
        broker = kind.MetadataResponseBroker
        brokers = [broker(node_id=node, host=self.host, port=self.port + node) for node in self.nodes]
        return kind(brokers=brokers, cluster_id=self.alias, controller_id=_CONTROLLER, topics=topics)


@functools.cache
def _versions(brokers: type[Brokers]) -> list[Any]:
    """The requests that such brokers know, each with its versions."""
    return [
        metadata.ApiVersionsResponse.ApiVersion(
            api_key=key, min_version=_MIN.get(one.name, 0), max_version=one.max_version
        )
        for key, one in _REQUESTS.items()
        if hasattr(brokers, f"_{one.name.removesuffix('Request')}")
    ]


_CODES = {"error_code", "partition_error_code"}
_NO_ANSWER = {"committed_offset", "base_offset", "producer_id", "producer_epoch", "offset", "end_offset", "node_id"}
"""Fields that brokers answer with -1 beside an error."""


def _spoil(answer: Any, fault: Fault) -> None:
    """Put the fault's error code where it belongs."""
    at = fault.at
    if at is At.NAMED:
        spoiled = [place for one in answer.topics if one.name == fault.topic for place in _innermost(one)]
    elif at is At.INNER:
        spoiled = _innermost(answer)
    elif at is At.ONE:
        spoiled = _innermost(answer)[-1:]
    else:
        spoiled = [answer] if at is At.OUTER else [one for value in _lists(answer) for one in value if _code(one)]
        for one in spoiled:
            for value in _lists(one):
                value.clear()
    assert spoiled, f"{answer.name} has no error code there"
    for one in spoiled:
        fields = _fields(one)
        setattr(one, _code(one), fault.code)
        for other in _NO_ANSWER & fields.keys():
            setattr(one, other, -1)
        if "records" in fields:
            one.records = b""


def _innermost(answer: Any) -> list[Any]:
    """The innermost places of an answer that have an error code."""
    inner = [place for value in _lists(answer) for one in value for place in _innermost(one)]
    return inner or ([answer] if _code(answer) else [])


def _fields(answer: Any) -> Mapping[str, Any]:
    """The fields of an answer, or of a part of it, by name."""
    fields: Mapping[str, Any] = answer._struct.fields
    return fields


def _lists(answer: Any) -> list[list[Any]]:
    """The lists of things in an answer."""
    lists = [value for name in _fields(answer) if isinstance(value := getattr(answer, name), list)]
    return [value for value in lists if all(isinstance(one, DataContainer) for one in value)]


def _code(answer: Any) -> str:
    """The name of the field for an error code; empty: there is none."""
    return next(iter(_CODES & _fields(answer).keys()), "")


_MESSAGES: list[Any] = [
    one
    for module in (producer, consumer, metadata, admin, messages)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, ApiMessage) and one is not ApiMessage
]
_REQUESTS: Mapping[int, Any] = {one.API_KEY: one for one in _MESSAGES if one.type == "request"}
_MIN = {"ProduceRequest": 3, "FetchRequest": 4, "ListOffsetsRequest": 1, "OffsetForLeaderEpochRequest": 2}
