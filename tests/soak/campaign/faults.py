"""What happens to the copy: each fault is drawn from a deck that has all of them, so that each one comes."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from ferry.dev.broker import Broker
from ferry.errors import FerryError
from ferry.protocol.names import ledger_topic
from tests.harness import commit_offsets, create_topic, grow_topic
from tests.soak.campaign.field import FLOW, Field, Side
from tests.soak.campaign.record import Record
from tests.soak.campaign.runs import Run, Runner
from tests.soak.campaign.writer import COPIED
from tests.tiers import ANSWER_S, PATIENCE

WRITER = f"ferry.{FLOW}.live.0"
POSITIONS = f"ferry.{FLOW}.live"
STARTED_S = 240 * PATIENCE

DECK: Mapping[str, int] = {
    **dict.fromkeys(("net-cut", "net-hang", "net-delay", "net-trickle", "net-lost-answers", "net-lost-requests"), 4),
    "net-refuse": 2,
    **dict.fromkeys(("kill-source-broker", "stop-source-broker", "kill-target-broker", "stop-target-broker"), 3),
    **dict.fromkeys(("kill-coordinator", "freeze-coordinator", "kill-ledger-leader", "freeze-ledger-leader"), 3),
    **dict.fromkeys(("kill-run", "kill-driver", "kill-worker"), 5),
    **dict.fromkeys(("terminate-driver", "freeze-run", "freeze-worker", "zombie-run", "second-run"), 3),
    **dict.fromkeys(("delete-positions", "commit-groups", "add-partitions", "new-topic", "delete-records"), 2),
    **dict.fromkeys(("kill-spark-jvm", "kill-spark-python"), 3),
}

MARKED: Mapping[str, int] = {
    **{name: 1 if name.startswith("net-") else 2 for name in DECK if not name.startswith("kill-spark")},
    **dict.fromkeys(("kill-at", "sleep-at", "doze-at"), 12),
    "leader-at": 8,
}
"""With identical offsets: more faults at a certain request."""

MARKERS, PRODUCE, COMMIT = "WriteTxnMarkersRequest", "ProduceRequest", "EndTxnRequest"
REQUESTS = {MARKERS: 8, PRODUCE: 4, COMMIT: 2}
"""Where runs die or fall asleep, and how often."""
LATER = {MARKERS: 5, PRODUCE: 8, COMMIT: 1}
"""How many of these requests come before, about."""
TRAP_S = 60
SUCCESSOR_S = 240 * PATIENCE


@dataclass
class Faults:
    """Makes them, one after the other."""

    place: Field
    runner: Runner
    record: Record
    rng: random.Random
    tell_writer: Callable[[str], None]
    spark: bool
    copied: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Source offsets that were copied when the sides were last compared: before them records may be deleted."""
    topics: int = 0
    partitions: dict[str, int] = field(default_factory=dict)
    _deck: list[str] = field(default_factory=list)
    _starting: threading.Thread | None = None
    """Starts a broker of the target again, while other faults than those of brokers may come."""

    def __post_init__(self) -> None:
        self.partitions |= dict.fromkeys(COPIED, 4)

    @property
    def _all(self) -> Mapping[str, int]:
        return MARKED if self.place.identical else DECK

    def one(self) -> str:
        """Make the next fault that can be made now, and undo it; its name."""
        while True:
            if not self._deck:
                self._deck = [name for name, count in self._all.items() for _ in range(count)]
                self.rng.shuffle(self._deck)
            name = self._deck.pop()
            if self._make(name):
                return name

    def _make(self, name: str) -> bool:
        """Whether it could be made."""
        if name.startswith("net-"):
            return self._network(name.removeprefix("net-"))
        if name.endswith(("-broker", "-coordinator", "-ledger-leader")):
            return self._broker(name)
        if name in ("delete-positions", "commit-groups", "add-partitions", "new-topic", "delete-records"):
            return self._data(name)
        if name.endswith("-at"):
            return self._trapped(name)
        if name == "second-run":
            self.record.say("fault", name=name)
            self.runner.see_through(self.runner.start("run"))
            return True
        run = self._run(spark=name.startswith("kill-spark"))
        return run is not None and self._process(name, run)

    def look_for_all(self, faults: int) -> None:
        """Of so many faults each kind has come at least once: one that can never be made would be missed by nobody."""
        if faults < 3 * sum(self._all.values()):
            return
        for name in sorted(self._all.keys() - self.record.faults.keys()):
            if self.spark or not name.startswith("kill-spark"):
                self.record.anomaly(f"fault {name} never came")

    def heal(self) -> None:
        """Have all brokers run and all bytes pass."""
        self._wait_for_broker()
        self.place.proxies.heal()
        for side in (self.place.source, self.place.target):
            for broker in side.cluster.brokers:
                if broker.state == "paused":
                    broker.resume()
            side.cluster.start(seconds=STARTED_S)

    def _network(self, mode: str) -> bool:
        side = self.rng.choice((self.place.source, self.place.target, self.place.target))
        ports = side.entries if self.rng.random() < 0.5 else (self.rng.choice(side.entries),)
        seconds = self.rng.uniform(0.5, 12 if mode in ("hang", "delay", "trickle") else 5)
        self.record.say("fault", name=f"net-{mode}", ports=ports, seconds=round(seconds, 1))
        for port in ports:
            self.place.proxies.change(port, mode, self.rng.uniform(0.02, 0.4))
        time.sleep(seconds)
        self.place.proxies.heal()
        return True

    def _start_again(self, side: Side, broker: Broker) -> None:
        self._starting = threading.Thread(target=broker.start, kwargs={"seconds": STARTED_S})
        self._starting.start()
        if side is self.place.source or not self.place.identical:
            self._wait_for_broker()

    def _wait_for_broker(self) -> None:
        if self._starting is not None:
            self._starting.join()
            self._starting = None

    def _broker(self, name: str) -> bool:
        self._wait_for_broker()
        side = self.place.source if "source" in name else self.place.target
        node = self.rng.choice([broker.node_id for broker in side.cluster.brokers])
        if name.endswith("-coordinator"):
            node = self._leader(side, "__transaction_state", _partition_of(WRITER, 4)) or 0
        elif name.endswith("-ledger-leader"):
            node = self._leader(side, ledger_topic("s"), 0) or 0
        if not node:
            return False
        broker = side.cluster.broker(node)
        seconds = self.rng.uniform(0.5, 10)
        self.record.say("fault", name=name, node=node, seconds=round(seconds, 1))
        if name.startswith("freeze"):
            broker.pause()
            time.sleep(seconds)
            broker.resume()
            return True
        broker.kill(signal.SIGTERM if name.startswith("stop") else signal.SIGKILL)
        time.sleep(seconds)
        self._start_again(side, broker)
        return True

    def _leader(self, side: Side, topic: str, partition: int) -> int | None:
        admin = AdminClient({"bootstrap.servers": side.cluster.bootstrap, "log_level": 0})
        found = admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions.get(partition)
        return found.leader if found is not None and found.leader > 0 else None

    def _run(self, *, spark: bool) -> Run | None:
        """A run that is at work, some time after its begin; None where none of the wanted kind is."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            run = self.runner.current
            if run is not None and run.process.poll() is None:
                if run.is_spark == spark:
                    time.sleep(self.rng.uniform(0, 6 if spark else 3))
                    return run if run.process.poll() is None else None
                return None
            time.sleep(0.02)
        return None

    def _process(self, name: str, run: Run) -> bool:
        members = run.members()
        children = [one for one in members if one.pid != run.process.pid]
        workers = [one for one in children if _has(one, "multiprocessing.spawn")]
        targets = {
            "kill-worker": workers,
            "freeze-worker": workers,
            "kill-spark-jvm": [one for one in members if _has(one, "java")],
            "kill-spark-python": [one for one in children if _has(one, "pyspark.daemon")],
        }
        chosen = targets.get(name, [one for one in members if one.pid == run.process.pid])
        if not chosen:
            return False
        run.touched = True
        victim = self.rng.choice(chosen)
        self.record.say("fault", name=name, run=run.number, kind=run.kind, pid=victim.pid)
        with suppress(psutil.NoSuchProcess):
            if name == "kill-run":
                run.signal_all(signal.SIGKILL)
            elif name in ("freeze-run", "zombie-run"):
                self._frozen(name, run)
            elif name == "freeze-worker":
                victim.suspend()
                time.sleep(self.rng.uniform(1, 15))
                victim.resume()
            else:
                victim.send_signal(signal.SIGTERM if name == "terminate-driver" else signal.SIGKILL)
        return True

    def _frozen(self, name: str, run: Run) -> None:
        """Freeze a run; as a zombie until another one has come to its end."""
        began = time.monotonic()
        run.frozen += 10_000  # it does not hang meanwhile
        run.signal_all(signal.SIGSTOP)
        if name == "zombie-run":
            self.runner.see_through(self.runner.start("run"))
        else:
            time.sleep(self.rng.uniform(2, 20))
        run.signal_all(signal.SIGCONT)
        run.frozen += time.monotonic() - began - 10_000

    def _trapped(self, name: str) -> bool:
        """Have a run die or fall asleep at a request; False if none came there."""
        if name == "leader-at":
            self._wait_for_broker()
        how = self.rng.choice(("kill", "kill-run")) if name == "kill-at" else "stop-run"
        request = self.rng.choice([one for one, weight in REQUESTS.items() for _ in range(weight)])
        count = 1 + int(self.rng.expovariate(1 / LATER[request]))
        trap = f"{how} {self.rng.choice(('before', 'after'))} {request} {count}"
        began = time.monotonic()
        self.runner.trap(trap)
        run = self._sprung(began)
        if run is None:
            return False
        run.touched = True
        self.record.say("fault", name=name, run=run.number, kind=run.kind, trap=trap)
        if name != "kill-at":
            began = time.monotonic()
            run.frozen += 10_000
            self._meanwhile(name, run)
            run.frozen += time.monotonic() - began - 10_000
        return True

    def _sprung(self, began: float) -> Run | None:
        """The run that came into the trap which was set then."""
        until = time.monotonic() + TRAP_S
        while time.monotonic() < until:
            run = self.runner.current
            if run is not None and run.trapped and run.began > began:
                if run.sprung.exists():
                    return run
                if run.process.poll() is not None:
                    return None
            time.sleep(0.02)
        self.runner.trap("")
        return None

    def _meanwhile(self, name: str, run: Run) -> None:
        """What happens while a run sleeps; it wakes then."""
        if name == "leader-at":
            broker = self.place.target.cluster.broker(
                self.rng.choice([one.node_id for one in self.place.target.cluster.brokers])
            )
            broker.kill(signal.SIGKILL)
            time.sleep(self.rng.uniform(0, 3))
            run.signal_all(signal.SIGCONT)
            time.sleep(self.rng.uniform(0.5, 10))
            self._start_again(self.place.target, broker)
        elif name == "doze-at":
            second = self.runner.start("run")
            time.sleep(self.rng.uniform(0.5, 12))
            run.signal_all(signal.SIGCONT)
            self.runner.see_through(second)
        else:
            until = time.monotonic() + SUCCESSOR_S
            while time.monotonic() < until:
                second = self.runner.start("run")
                self.runner.see_through(second)
                if second.process.returncode == 0:
                    break
            else:
                self.record.anomaly(f"no successor of run {run.number} came to its end in {SUCCESSOR_S} s")
            run.signal_all(signal.SIGCONT)

    def _data(self, name: str) -> bool:
        if name == "delete-records" and not any(self.copied.values()):
            return False
        self.record.say("fault", name=name)
        try:
            self._change(name)
        except (KafkaException, FerryError, TimeoutError) as error:
            self.record.say("not done", name=name, why=str(error))
            return False
        return True

    def _change(self, name: str) -> None:
        source, target = self.place.source.cluster, self.place.target.cluster
        topic = self.rng.choice(sorted(self.partitions))
        if name == "delete-positions":
            # Kept in a name: the answers of a client that is gone never come.
            client = AdminClient({"bootstrap.servers": target.bootstrap, "log_level": 0})
            client.delete_consumer_groups([POSITIONS])[POSITIONS].result(4 * ANSWER_S)
        elif name == "commit-groups":
            commit_offsets(source, "g-churn", {(topic, 0): self.rng.randrange(100)})
        elif name == "add-partitions":
            self.partitions[topic] += 1
            grow_topic(source, topic, self.partitions[topic])
            self.tell_writer(f"topic {topic} {self.partitions[topic]}")
        elif name == "new-topic":
            self.topics += 1
            new = f"c-new-{self.topics}"
            create_topic(source, new, 2, {"max.message.bytes": "2000000"}, replicas=len(source.brokers))
            self.tell_writer(f"topic {new} 2")
        else:
            asked = [
                TopicPartition(*place, self.rng.randrange(end // 2, end + 1))
                for place, end in self.copied.items()
                if place[0] == topic and end
            ]
            client = AdminClient({"bootstrap.servers": source.bootstrap, "log_level": 0})
            for answer in (client.delete_records(asked) if asked else {}).values():
                answer.result(4 * ANSWER_S)


def _has(process: psutil.Process, word: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return any(word in part for part in process.cmdline()[:6])
    return False


def _partition_of(key: str, partitions: int) -> int:
    """As Kafka assigns a transactional id to a coordinator: Java's hashCode."""
    found = 0
    for character in key:
        found = (31 * found + ord(character)) & 0xFFFFFFFF
    found = found - (1 << 32) if found >= 1 << 31 else found
    return (found & 0x7FFFFFFF) % partitions
