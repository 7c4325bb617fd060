"""Two scripted clusters under the command line: what a command answers where nothing of it is left to chance."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pickle
import pwd
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest import mock

from ferry.commands import version
from ferry.errors import Refused
from ferry.features.doctor.acts import machine
from ferry.features.drill.acts import report as drill_report
from ferry.features.evidence.acts import charts
from ferry.features.switch.acts import application
from ferry.features.switch.acts import report as switch_report
from ferry.kafka.connect import cluster
from ferry.kafka.connect.manager import ConnectionManager
from ferry.kafka.librdkafka import FirstRecord
from ferry.model import Flow, Record, TopicPartition
from ferry.program import main
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.program import environment
from tests.pure.decide.test_museum import Exhibit
from tests.pure.protocol.broker import Entry
from tests.pure.scripted.batches import Part
from tests.pure.scripted.clock import Clock, Skipping
from tests.pure.scripted.whole import WholeBrokers
from tests.pure.scripted.wire import Wire

BEGAN_MS = 1_800_000_000_000
MINUTE_MS = 60_000
FILE = "mm2.properties"
NO_LIBRDKAFKA = "librdkafka reaches no scripted broker"
TICK = 1e-9
"""Seconds that pass with a look at the clock: so few that rounded times do not depend on the number of looks."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a command said."""

    asked: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def body(self) -> Any:
        """The JSON."""
        return json.loads(self.out)


@dataclass(kw_only=True)
class World:
    """Clusters a and b, and a wall clock that moves a minute with each command."""

    folder: Path
    a: WholeBrokers = field(default_factory=lambda: WholeBrokers(alias="a"))
    b: WholeBrokers = field(default_factory=lambda: WholeBrokers(alias="b"))
    now_ms: int = BEGAN_MS
    tokens: int = 0
    lost: WholeBrokers | None = None
    """A cluster that refuses connections."""

    def __post_init__(self) -> None:
        for number, one in enumerate((self.a, self.b)):
            one.port = 1000 * (number + 1)
            one.settings = {"max.message.bytes": "1048588", "cleanup.policy": "delete", "retention.ms": "604800000"}

    def write(self, *lines: str, aliases: tuple[str, str] = ("a", "b")) -> None:
        """Write the file of the flow with these lines, of which one may replace a line that it has."""
        a, b = aliases
        text = (
            f"clusters = {a}, {b}",
            f"{a}.bootstrap.servers = 127.0.0.1:{self.a.port + 1}",
            f"{b}.bootstrap.servers = 127.0.0.1:{self.b.port + 1}",
            f"{a}->{b}.enabled = true",
            "ferry.deployment = kept",
            "replication.factor = 1",
            "tasks.max = 1",
        )
        by_key = {line.partition(" = ")[0]: line for line in (*text, *lines)}
        (self.folder / FILE).write_text("\n".join(by_key.values()) + "\n")

    def produce(self, brokers: WholeBrokers, topic: str, partition: int, count: int, size: int = 10) -> None:
        """A batch of records, whose values are their offsets."""
        base = brokers.log(topic, partition).end
        rows = [Record(key=b"k%d" % (base + at), value=b"%0*d" % (size, base + at)) for at in range(count)]
        brokers.append(topic, build_batch(rows, self.now_ms - MINUTE_MS, ProducerIdentity()), partition)

    def hold(self, brokers: WholeBrokers, topic: str, partition: int) -> None:
        """A record of a transaction that does not end."""
        producer, epoch = brokers.target.init_producer("hanging")
        identity = ProducerIdentity(producer_id=producer, producer_epoch=epoch, sequence=0, transactional=True)
        batch = build_batch([Record(key=b"k", value=b"open")], self.now_ms - MINUTE_MS, identity)
        brokers.write_in("hanging", TopicPartition(topic=topic, partition=partition), batch)

    def commit(self, brokers: WholeBrokers, group: str, **offsets: int) -> None:
        """What a group has committed; `orders_1=4` is partition 1 of topic orders."""
        held = brokers.groups.setdefault(group, {})
        for name, offset in offsets.items():
            topic, _, number = name.rpartition("_")
            held[TopicPartition(topic=topic, partition=int(number))] = offset, ""

    def lose(self, brokers: WholeBrokers, topic: str, partition: int, begin: int) -> None:
        """Produce up to `begin` and a record more, and delete all that is before it, as retention does."""
        place = TopicPartition(topic=topic, partition=partition)
        self.produce(brokers, topic, partition, begin - brokers.log(topic, partition).end)
        self.produce(brokers, topic, partition, 1)
        brokers.begins[place] = begin

    def change(self, brokers: WholeBrokers, topic: str, partition: int) -> None:
        """Put other records in place of the first batch."""
        log = brokers.log(topic, partition)
        first = log.entries[0].payload
        assert isinstance(first, Part)
        count = sum(isinstance(one.payload, Part) and one.payload.batch == first.batch for one in log.entries)
        rows = [Record(key=b"k%d" % at, value=b"other %d" % at) for at in range(count)]
        batch = build_batch(rows, self.now_ms, ProducerIdentity())
        log.entries[:count] = [Entry(payload=Part(batch, at)) for at in range(count)]

    def load(self, kept: Exhibit) -> None:
        """Give b the ledger of a museum, at its offsets, and write the file of its flow."""
        flow, settings = Flow.parse(kept.head.flow), {"topics": ", ".join(topics_of(kept)), **kept.settings}
        self.b.alias = kept.head.cluster_id
        ledger = ledger_topic(flow.source)
        self.b.topic(ledger)
        log = self.b.log(ledger)
        log.entries = [Entry(producer=1, committed=True) for _ in range(kept.end)]
        for one in kept.ones:
            batch = build_batch([one.record], kept.head.at_ms, ProducerIdentity())
            log.entries[one.offset] = Entry(payload=Part(batch, 0))
        self.write(*(f"{key} = {value}" for key, value in settings.items()), aliases=(flow.source, flow.target))

    def ask(self, *words: str, output: str = "json") -> Answer:
        """Run a command."""
        self.now_ms += MINUTE_MS
        out, err = io.StringIO(), io.StringIO()
        code: Any = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main([*words, "-o", output])
            except SystemExit as end:
                code = end.code or 0
        for one in (self.a, self.b):
            if one.broken:
                raise one.broken[0]
        return Answer(asked=words, code=code, out=out.getvalue(), err=err.getvalue())

    def kept(self) -> bytes:
        """The clusters, times and files, for `restore`; without the requests so far."""
        for one in (self.a, self.b):
            one.asked.clear()
        files = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
        return pickle.dumps((vars(self.a), vars(self.b), self.now_ms, self.tokens, files))

    def restore(self, kept: bytes) -> None:
        """Put back what another world kept."""
        of_a, of_b, self.now_ms, self.tokens, files = pickle.loads(kept)
        vars(self.a).update(of_a)
        vars(self.b).update(of_b)
        for name, content in files.items():
            (self.folder / name).write_bytes(content)

    def time_ns(self) -> int:
        """In place of the machine's clock."""
        return self.now_ms * 1_000_000

    def token_bytes(self, size: int = 32) -> bytes:
        """In place of what is drawn at random."""
        self.tokens += 1
        return self.tokens.to_bytes(size, "big")

    def token_hex(self, size: int = 32) -> str:
        """The same as text."""
        return self.token_bytes(size).hex()


def topics_of(kept: Exhibit) -> list[str]:
    """The source topics of a museum's flow."""
    return sorted({name.rpartition("/")[0] for name in kept.logs if not name.startswith("target ")})


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Put back what a command sets for its process: where logs go, and what Ctrl-C does."""
    logs = [logging.getLogger(name) for name in (None, "ferry", "kafka")]
    before = [(log, log.level, [*log.handlers]) for log in logs]
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupted)
        for log, level, handlers in before:
            log.setLevel(level)
            log.handlers = handlers


@contextlib.contextmanager
def world(folder: Path) -> Iterator[World]:
    """A world whose processes, hosts, times and random numbers are always the same."""
    made = World(folder=folder)
    clock = Clock(TICK)

    async def build(self: ConnectionManager, node: Any, timeout_at: float | None = None) -> Wire:
        brokers = next(one for one in (made.b, made.a) if node.port > one.port)
        if brokers is made.lost:
            raise ConnectionRefusedError("Connection refused")
        return Wire(self._loop, brokers, node.port - brokers.port)

    patches: list[Any] = [
        clock.in_force(),
        mock.patch.object(ConnectionManager, "_build_transport", build),
        mock.patch.object(cluster, "Selector", partial(Skipping, clock)),
        # librdkafka has sockets of its own, which reach no scripted broker.
        mock.patch.object(
            application, "first_record", side_effect=lambda *_, **__: FirstRecord(made.now_ms + 250, NO_LIBRDKAFKA)
        ),
        mock.patch.object(application, "write_records", side_effect=Refused(NO_LIBRDKAFKA)),
        # A second for each report; tests/pure/reports draws them.
        mock.patch.object(charts, "drawn", return_value="<svg></svg>"),
        mock.patch.object(time, "time_ns", made.time_ns),
        mock.patch.object(socket, "gethostname", return_value="desk-7"),
        mock.patch.object(secrets, "token_bytes", made.token_bytes),
        mock.patch.object(secrets, "token_hex", made.token_hex),
        *(mock.patch.object(module, "__version__", "1.2.3") for module in (version, switch_report, drill_report)),
        mock.patch.object(os, "getpid", return_value=7),
        mock.patch.object(pwd, "getpwuid", return_value=SimpleNamespace(pw_name="ann")),
        mock.patch.object(machine, "versions", return_value={"python": "3.11.0", "ferry-replicator": "1.2.3"}),
        mock.patch.object(machine, "java_version", return_value=21),
        mock.patch.object(machine, "entry_points", return_value=()),
        mock.patch.dict(os.environ, environment(Path(FILE)), clear=True),
        contextlib.chdir(folder),
        undisturbed(),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield made


@cache
def after(before: Callable[[World], None]) -> bytes:
    """What a world keeps in which this was done, for `World.restore`."""
    with TemporaryDirectory() as folder, world(Path(folder)) as made:
        before(made)
        return made.kept()


@contextlib.contextmanager
def world_after(before: Callable[[World], None]) -> Iterator[World]:
    """A world in which this was done. It is done once in a process: other worlds get what it left."""
    kept = after(before)
    with TemporaryDirectory() as folder, world(Path(folder)) as made:
        made.restore(kept)
        yield made
