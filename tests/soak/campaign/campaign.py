"""Faults at random, rounds that are judged, and a record of it all."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from confluent_kafka import KafkaException

from ferry.dev import RunningCluster
from tests.harness import Message, producer, send, wait_until
from tests.soak.campaign.faults import Faults
from tests.soak.campaign.field import Field, field
from tests.soak.campaign.judge import Judge
from tests.soak.campaign.record import Record
from tests.soak.campaign.runs import Runner
from tests.soak.campaign.writer import IDEMPOTENT
from tests.tiers import ANSWER_S

ROOT = Path(__file__).resolve().parents[3]
RATE = 200
"""Records a second, of all producers together, where the machine is fast enough."""

SETTLED_S = 120


class Progress:
    """How long after a fault the copies grew again."""

    def __init__(self, place: Field, record: Record, runner: Runner) -> None:
        self._field = place
        self._record = record
        self._runner = runner
        self._pending: list[tuple[str, float]] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def begin(self, fault: str, at: float) -> None:
        """A fault that began at this time.monotonic()."""
        with self._lock:
            self._pending.append((fault, at))

    def forget(self) -> None:
        """Nothing is to be copied from now on."""
        with self._lock:
            self._pending.clear()

    def close(self) -> None:
        """Look no further."""
        self._end.set()
        self._thread.join(2 * ANSWER_S)

    def _watch(self) -> None:
        total = 0
        while not self._end.wait(1):
            with suppress(KafkaException):
                found = sum(self._field.ends().values())
                if found > total:
                    total = found
                    self._runner.grown_at = time.monotonic()
                    with self._lock:
                        for fault, at in self._pending:
                            self._record.progressed(fault, time.monotonic() - at)
                        self._pending.clear()


class Writer:
    """The process that writes at the source."""

    def __init__(self, cluster: RunningCluster, seed: int, rate: int, folder: Path, *, identical: bool = False) -> None:
        """`folder` has what it complains of. With `identical`, no topic is compacted."""
        with (folder / "writer.err").open("wb") as complaints:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.soak.campaign.writer",
                    cluster.bootstrap,
                    str(seed),
                    str(rate),
                    *(["identical"] if identical else []),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                cwd=ROOT,
            )
        self._expect("ready")

    def tell(self, line: str) -> None:
        """One line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def pause(self) -> None:
        """Have it rest."""
        self.tell("pause")
        self._expect("paused")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(ANSWER_S)

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word


def campaign(
    folder: Path, *, seed: int, faults: int, per_round: int, spark: bool, rate: int = RATE, identical: bool = False
) -> Record:
    """Make so many faults, and judge after every `per_round` of them; the record is in `folder`, too.

    Producers write about `rate` records a second; without `spark` no run takes a JVM. With `identical`, the flow has
    identical offsets, and each record must have its source offset.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "runs").mkdir(exist_ok=True)
    record = Record(folder=folder, seed=seed)
    rng = random.Random(seed)
    with field(folder / "clusters", identical=identical) as place:
        writer = Writer(place.source.cluster, seed, rate, folder, identical=identical)
        runner = Runner(place, record, random.Random(rng.random()), folder / "runs", spark=spark)
        progress = Progress(place, record, runner)
        both = place.source.cluster, place.target.cluster
        judge = Judge(*both, place.config, record, random.Random(rng.random()), identical=identical)
        made = Faults(place, runner, record, rng, writer.tell, spark)
        try:
            for number in range(1, -(-faults // per_round) + 1):
                writer.tell("resume")
                runner.resume()
                for _ in range(min(per_round, faults - per_round * (number - 1))):
                    began = time.monotonic()
                    name = made.one()
                    record.faults[name] += 1
                    progress.begin(name, began)
                    time.sleep(rng.uniform(0, 3))
                made.heal()
                writer.pause()
                runner.rest()
                progress.forget()
                wait_until(judge.source.is_settled, "a source that is settled", SETTLED_S)
                made.copied = judge.round(number)
                record.write()
            judge.read_again()
            judge.find_aborted()
            made.look_for_all(faults)
            if spark:
                runner.look_for_spark(faults)
            send(producer(place.target.cluster), f"s.{IDEMPOTENT}", [Message(value=b"planted")])
            judge.find_planted()
        finally:
            record.write()
            runner.close()
            progress.close()
            writer.close()
    return record
