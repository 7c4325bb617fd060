"""Are both sides the same? Asked by an independent reader, and of Ferry's own answers about offsets."""

from __future__ import annotations

import itertools
import json
import random
import secrets
import time
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ferry.dev import RunningCluster
from tests.harness import commit_offsets, committed_offsets
from tests.program import warm_ferry as ferry
from tests.soak.campaign.field import FLOW
from tests.soak.campaign.record import Record
from tests.soak.campaign.runs import NOT_QUIET, program_of
from tests.soak.campaign.writer import COMPACTED, COPIED, TRANSACTIONAL
from tests.tiers import ANSWER_S, PATIENCE

Place = tuple[str, int]
TRIES = 6
"""How often a run is begun until one of them copies all that is left, when all is whole again."""
QUIET_S = 180 * PATIENCE
"""How long runs are begun that wait until no marker can be late."""

SILENT_S = 300 * PATIENCE
"""How long a reader that is not at the end waits for its next record. All of an hour takes a busy machine longer."""
ASKED = 4
"""Records of a round whose offsets Ferry is asked for, one by one. With identical offsets it is one."""


@dataclass
class Log:
    """The records of a partition: where they lie, and the digest of each."""

    offsets: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)


class Reader:
    """Reads a cluster past the proxies and past Ferry, from where it came to last."""

    def __init__(self, cluster: RunningCluster, prefix: str, isolation: str = "read_committed") -> None:
        self._isolation = isolation
        self._bootstrap = cluster.bootstrap
        self._prefix = prefix
        self.logs: dict[Place, Log] = {}
        self._next: dict[Place, int] = {}
        self.starts: dict[Place, int] = {}
        """Where each log begins now."""
        self.ends: dict[Place, int] = {}
        """Where each log ends now."""
        self.reached: dict[Place, int] = {}
        """Where this reader is in each log, after its last record and what comes after that."""

    def read(self) -> None:
        """Read on to the end."""
        consumer = self._consumer(self._isolation)
        try:
            places = self._places(consumer)
            for place in places:
                self.starts[place], self.ends[place] = consumer.get_watermark_offsets(
                    TopicPartition(*place), timeout=ANSWER_S
                )
                self._next[place] = max(self._next.get(place, 0), self.starts[place])
            consumer.assign([TopicPartition(*place, self._next[place]) for place in places])
            for place, message in _until_the_end(consumer, set(places), self.reached):
                log = self.logs.setdefault(place, Log())
                offset = message.offset()
                assert offset is not None
                log.offsets.append(offset)
                log.digests.append(_digest(message))
                self._next[place] = offset + 1
            for place in places:
                self.logs.setdefault(place, Log())
        finally:
            consumer.close()

    def latest(self, topic: str) -> tuple[dict[Place, dict[bytes, bytes]], list[str]]:
        """Of a compacted topic the newest value by key, and what is out of order: its values have ascending numbers."""
        consumer = self._consumer()
        found: dict[Place, dict[bytes, bytes]] = {}
        complaints: list[str] = []
        last: dict[Place, int] = {}
        try:
            places = [place for place in self._places(consumer, topic) if place[0] == topic]
            consumer.assign([TopicPartition(*place, 0) for place in places])
            for place in places:
                found[place] = {}
            for place, message in _until_the_end(consumer, set(places)):
                key, value = message.key() or b"", message.value()
                assert isinstance(key, bytes)
                if value is None:
                    found[place].pop(key, None)
                    continue
                assert isinstance(value, bytes)
                number = int(value.split(b":", 1)[0])
                if number <= last.get(place, 0):
                    complaints.append(f"record {message.offset()} of {place} is out of order")
                last[place], found[place][key] = number, value
        finally:
            consumer.close()
        return found, complaints

    def count_all(self, topic: str) -> int:
        """How many records a topic has, those of aborted transactions included."""
        consumer = self._consumer("read_uncommitted")
        try:
            places = [place for place in self._places(consumer, topic) if place[0] == topic]
            consumer.assign([TopicPartition(*place, self.starts[place]) for place in places])
            return sum(1 for _ in _until_the_end(consumer, set(places)))
        finally:
            consumer.close()

    def is_settled(self) -> bool:
        """Whether no transaction is open: a read_committed reader comes to the ends of the logs."""
        stable = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        consumer = self._consumer()
        try:
            places = {TopicPartition(*place): OffsetSpec.latest() for place in self._places(consumer)}
        finally:
            consumer.close()
        ends = [
            {
                place: answer.result().offset
                for place, answer in stable.list_offsets(places, isolation_level=one).items()
            }
            for one in IsolationLevel
        ]
        return ends[0] == ends[1]

    def _consumer(self, isolation: str = "read_committed") -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"judge-{secrets.token_hex(4)}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "auto.offset.reset": "error",
                "log_level": 0,
            }
        )

    def _places(self, consumer: Consumer, topic: str = "") -> list[Place]:
        topics = consumer.list_topics(timeout=2 * ANSWER_S).topics
        chosen = [
            name
            for name in topics
            if name.startswith(self._prefix) and (name == topic if topic else not name.endswith(COMPACTED))
        ]
        return [(name, number) for name in sorted(chosen) for number in sorted(topics[name].partitions)]


class Judge:
    """Compares both sides after each round."""

    def __init__(
        self,
        source: RunningCluster,
        target: RunningCluster,
        config: Path,
        record: Record,
        rng: random.Random,
        *,
        identical: bool = False,
    ) -> None:
        """`config` is Ferry's file, for what is asked of Ferry; `identical`: the flow has identical offsets."""
        self._source = source
        self._target = target
        self._config = config
        self._record = record
        self._rng = rng
        self._identical = identical
        self.source = Reader(source, "c-")
        self.target = Reader(target, "s.c-")

    def round(self, number: int) -> dict[tuple[str, int], int]:
        """Copy what is left, and compare; the source's ends. What differs is an anomaly. The source must be at rest."""
        self.source.read()
        group = f"g-{number}"
        wanted = self._commit(group)
        if not self._copy():
            return {}
        self.target.read()
        found: dict[str, Any] = {"round": number, "records": self._records(), "partitions": len(self.source.logs)}
        self._none_empty()
        if self._identical:
            found["at their offsets"] = self._at_their_offsets()
        else:
            found["compacted keys"] = self._compacted()
        found["group offsets"] = self._groups(group, wanted)
        found["translations"] = self._translated(group) + self._asked(1 if self._identical else ASKED)
        found["verify"] = "equal" if self._verified() else "differs"
        self._record.rounds.append(found)
        self._record.say("round", **found)
        return {place: end for place, end in self.source.ends.items() if place in self.source.logs}

    def standing(self, group: str) -> int:
        """Compare where an application's group stands on both sides; the number of its offsets. As after `round`."""
        wanted: dict[Place, int] = {}
        for topic in sorted({topic for topic, _ in self.source.logs}):
            partitions = 1 + max(number for name, number in self.source.logs if name == topic)
            for number, offset in committed_offsets(self._source, group, topic, partitions).items():
                wanted[topic, number] = bisect_left(self.source.logs[topic, number].offsets, offset)
        if not wanted:
            self._record.anomaly(f"group {group} stands nowhere at the source")
        return self._groups(group, wanted)

    def read_again(self) -> None:
        """Read the whole target again, and of the source what it still has, and compare."""
        target = Reader(self._target, "s.c-")
        target.read()
        for place, log in self.target.logs.items():
            if (target.logs[place].offsets, target.logs[place].digests) != (log.offsets, log.digests):
                self._record.anomaly(f"{place} reads otherwise when it is read again")

    def find_aborted(self) -> None:
        """Some transactions were aborted at the source: else nothing that the campaign says of them is worth much."""
        committed = sum(
            offset >= self.source.starts[place]
            for place, log in self.source.logs.items()
            for offset in log.offsets
            if place[0] == TRANSACTIONAL
        )
        there = self.source.count_all(TRANSACTIONAL)
        self._record.say("transactions", committed=committed, written=there)
        if not committed or there <= committed:
            self._record.anomaly(f"of {there} records in transactions {committed} are committed: none was aborted")

    def find_planted(self) -> None:
        """A record that is at the target alone must be found by `ferry verify`."""
        answer = ferry("verify", FLOW, "--json", config=self._config)
        kinds = {one["kind"] for one in json.loads(answer.out)["differences"]}
        if answer.code != 1 or kinds != {"extra"}:
            self._record.anomaly(f"ferry verify does not find a planted record: exit {answer.code}, {kinds}")

    def _commit(self, group: str) -> dict[Place, int]:
        """Commit offsets of a new group at the source; how many records each leaves read."""
        chosen: dict[Place, int] = {}
        for place, log in self.source.logs.items():
            left = [offset for offset in log.offsets if offset >= self.source.starts[place]]
            chosen[place] = self._rng.choice([*left[-2000:], self.source.ends[place]])
        commit_offsets(self._source, group, chosen)
        return {place: bisect_left(self.source.logs[place].offsets, offset) for place, offset in chosen.items()}

    def _copy(self) -> bool:
        """Run until one of the runs ends well; whether one did."""
        said, until, program = "", time.monotonic() + QUIET_S, program_of(identical=self._identical)
        for number in itertools.count(1):
            answer = ferry("run", FLOW, "--json", config=self._config, program=program)
            if answer.code == 0:
                return True
            said = f"{answer.err[-400:]} {answer.out[:400]}"
            self._record.say("run of the round", tries=number, code=answer.code, err=answer.err[-300:])
            if number >= TRIES and not (self._identical and NOT_QUIET in answer.out and time.monotonic() < until):
                break
            time.sleep(0.5)
        self._record.anomaly(f"no run ends well though all is whole again: {said}")
        return False

    def _records(self) -> int:
        """Compare all records so far: key, value, headers, timestamp and order."""
        compared = 0
        for (topic, number), log in self.source.logs.items():
            copy = self.target.logs.get((f"s.{topic}", number), Log())
            if copy.digests != log.digests:
                at = next(
                    (at for at, (a, b) in enumerate(zip(log.digests, copy.digests, strict=False)) if a != b),
                    min(len(log.digests), len(copy.digests)),
                )
                self._record.anomaly(
                    f"{topic}-{number} differs at record {at} (source offset {log.offsets[at : at + 1]}, target offset "
                    f"{copy.offsets[at : at + 1]}): {len(log.digests)} records at the source, {len(copy.digests)} at "
                    f"the target, {len(set(copy.digests))} different ones"
                )
            compared += len(log.digests)
        return compared

    def _none_empty(self) -> None:
        """A topic without a record proves nothing."""
        filled = {topic for (topic, _), log in self.source.logs.items() if log.offsets}
        for topic in sorted({*COPIED} - filled):
            self._record.anomaly(f"nothing was ever written to {topic}")

    def _at_their_offsets(self) -> int:
        """Each record is at its source offset, for readers with either isolation, and they come to the logs' ends."""
        same = 0
        raw = Reader(self._target, "s.c-", "read_uncommitted")
        raw.read()
        for (topic, number), log in self.source.logs.items():
            copy = self.target.logs.get((f"s.{topic}", number), Log())
            shifted = [(here, there) for here, there in zip(log.offsets, copy.offsets, strict=False) if here != there]
            if shifted or len(log.offsets) != len(copy.offsets):
                self._record.anomaly(f"{len(shifted)} records of {topic}-{number} are shifted, first {shifted[:1]}")
            same += len(log.offsets) - len(shifted)
            place = f"s.{topic}", number
            if (raw.logs[place].offsets, raw.logs[place].digests) != (copy.offsets, copy.digests):
                self._record.anomaly(f"readers with read_uncommitted see other records of {topic}-{number}")
            ends = self.source.ends[topic, number], self.target.reached[place], raw.reached[place]
            if set(ends) != {raw.ends[place]}:
                self._record.anomaly(
                    f"{topic}-{number} ends at {raw.ends[place]}; source, and readers with either isolation: {ends}"
                )
        return same

    def _compacted(self) -> int:
        here, _ = self.source.latest(COMPACTED)
        there, complaints = self.target.latest(f"s.{COMPACTED}")
        for sentence in complaints:
            self._record.anomaly(sentence)
        for (topic, number), values in here.items():
            if there.get((f"s.{topic}", number)) != values:
                self._record.anomaly(f"{topic}-{number} has other values by key at the target")
        return sum(map(len, here.values()))

    def _groups(self, group: str, wanted: dict[Place, int]) -> int:
        """Each offset of the group has the same next record on both sides."""
        for topic in sorted({topic for topic, _ in wanted}):
            mine = [number for name, number in wanted if name == topic]
            found = committed_offsets(self._target, group, f"s.{topic}", max(mine) + 1)
            for number in mine:
                offset = found.get(number)
                if offset is None:
                    self._record.anomaly(f"group {group} has no offset of s.{topic}-{number}")
                elif self._read(topic, number, offset) != wanted[topic, number]:
                    self._record.anomaly(
                        f"group {group} is at {offset} of s.{topic}-{number}, so it has read "
                        f"{self._read(topic, number, offset)} records; at the source {wanted[topic, number]}"
                    )
        return len(wanted)

    def _read(self, topic: str, number: int, offset: int) -> int:
        return bisect_left(self.target.logs[f"s.{topic}", number].offsets, offset)

    def _translated(self, group: str) -> int:
        body = self._json("translate", FLOW, "--group", group, "--json")
        rows = body.get("partitions", [])
        for row in rows:
            here = bisect_left(
                self.source.logs[row["source_topic"], row["source_partition"]].offsets, row["source_offset"]
            )
            there = self._read(row["source_topic"], row["source_partition"], row["target_offset"])
            if here != there or row["outcome"] not in ("exact", "gap"):
                self._record.anomaly(f"a translation of {group} is wrong: {row}")
        if not rows:
            self._record.anomaly(f"group {group} has no translation")
        return len(rows)

    def _asked(self, count: int) -> int:
        """Offsets of some records, both ways and by the ledger."""
        places = [
            (place, at)
            for place, log in self.source.logs.items()
            for at, offset in enumerate(log.offsets)
            if offset >= self.source.starts[place]
        ]
        chosen = self._rng.sample(places, min(count, len(places)))
        for (topic, number), at in chosen:
            offset = self.source.logs[topic, number].offsets[at]
            copy = self.target.logs[f"s.{topic}", number].offsets[at]
            there = self._json("translate", FLOW, topic, str(number), str(offset), "--json")
            back = self._json("translate", FLOW, f"s.{topic}", str(number), str(copy), "--reverse", "--json")
            shown = self._json(
                *("ledger", "show", FLOW, "--topic", topic, "--partition", str(number), "--offset", str(offset)),
                "--json",
            )
            told = [one["target_offset"] for one in shown.get("receipts", ()) if one["void"] is None]
            answers = there.get("target_offset"), back.get("source_offset"), told
            if answers != (copy, offset, [copy]) or {there.get("outcome"), back.get("outcome")} != {"exact"}:
                self._record.anomaly(
                    f"offset {offset} of {topic}-{number} is {copy} at the target; translate, its reverse and the "
                    f"ledger say {answers}"
                )
        return 3 * len(chosen)

    def _verified(self) -> bool:
        body = self._json("verify", FLOW, "--json")
        if body.get("equal") is not True:
            self._record.anomaly(f"ferry verify: {json.dumps(body)[:600]}")
        return body.get("equal") is True

    def _json(self, *arguments: str) -> dict[str, Any]:
        answer = ferry(*arguments, config=self._config)
        try:
            body: dict[str, Any] = json.loads(answer.out)
        except ValueError:
            body = {}
        if answer.code not in (0, 1) or not body:
            self._record.anomaly(f"ferry {' '.join(arguments)} ended with {answer.code}: {answer.err[-300:]}")
        return body


def _until_the_end(
    consumer: Consumer, waiting: set[Place], reached: dict[Place, int] | None = None
) -> Iterable[tuple[Place, Message]]:
    """Yield records until each partition's end; `reached` gets the offsets of these ends."""
    until = time.monotonic() + SILENT_S
    while waiting:
        assert time.monotonic() < until, f"no record and no end of {waiting} for {SILENT_S} s"
        for message in consumer.consume(5_000, timeout=0.3):
            place = message.topic() or "", message.partition() or 0
            error = message.error()
            if error is None:
                waiting.add(place)  # the end was that of a moment
                until = time.monotonic() + SILENT_S
                yield place, message
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(place)
                if reached is not None:
                    reached[place] = message.offset() or 0
            elif not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
                raise KafkaException(error)


def _digest(message: Message) -> bytes:
    told = (message.key(), message.value(), message.headers() or [], message.timestamp())
    return blake2b(repr(told).encode(), digest_size=12).digest()
