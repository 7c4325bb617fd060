"""An hour of ordinary work: a source that is written and read, Ferry in one process, and a clock that steps."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
from confluent_kafka import Consumer
from prometheus_client.parser import text_string_to_metric_families

from ferry.dev import ClusterSpec, RunningCluster, up_all
from ferry.protocol.names import ledger_topic
from tests.harness import Message, producer, send, wait_until
from tests.program import environment
from tests.soak.campaign.campaign import ROOT, SETTLED_S, Writer
from tests.soak.campaign.field import BROKER, create_topics, flow_text
from tests.soak.campaign.judge import Judge
from tests.soak.campaign.record import Record
from tests.soak.campaign.writer import IDEMPOTENT, PLAIN, TRANSACTIONAL
from tests.soak.steady.clock import SteppedClock
from tests.soak.steady.copies import COMMAND_EACH
from tests.soak.steady.ledger import LedgerWatch
from tests.tiers import ANSWER_S, PATIENCE

RATE = 700
"""Records a second, of all producers together, where the machine is fast enough."""

EACH_S = 10
"""How often all is sampled."""

STEPS = (3600, 0, -10, -3600, 3600, -10, 0)
"""By how many seconds Ferry's clock is off, one after the other, each for as long: forward, back to the true time, back
by ten seconds, back by an hour, forward by two, back by an hour and a little, and true again."""

WARM_RUNS = 2 * COMMAND_EACH
"""So many runs have met all code, so that all is imported; a process that lives on has begun with the first command."""

ALIVE_S = 120 * PATIENCE
"""Within it the process of the copies ends its last run."""

GROUP = "g-steady"
HEAD = (
    *("minute", "clock", "runs", "s a run", "lag", "fds", "threads", "RSS MB", "children MB"),
    *("ledger offsets", "since a summary", "live", "receipts", "summaries", "ledger MB"),
)


@dataclass(frozen=True, kw_only=True)
class Quarter:
    """A quarter of the time."""

    runs: list[dict[str, Any]]
    tail: float
    """How many offsets the ledger had behind its newest summary, in the median."""
    most_tail: int
    """The most so far."""
    receipts: float
    """How many receipts the ledger had, in the median."""


@dataclass(kw_only=True)
class Steady:
    """What was seen."""

    record: Record
    clock: SteppedClock
    samples: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    complaints: str = ""
    """What the process of the copies said on standard error."""
    live: dict[str, int] = field(default_factory=dict)
    """The ledger's records by kind after the last of these runs."""

    def quarter(self, number: int) -> Quarter:
        """A quarter of the time, from 1, after the first WARM_RUNS."""
        begin, end = self.runs[WARM_RUNS]["began"], self.runs[-1]["ended"]
        low, high = (begin + (end - begin) * part / 4 for part in (number - 1, number))
        tails = [(one["asked"], one["tail"]) for one in self.samples]
        return Quarter(
            runs=[one for one in self.runs if low <= one["began"] < high],
            tail=statistics.median(tail for at, tail in tails if low <= at < high),
            most_tail=max(tail for at, tail in tails if at < high),
            receipts=statistics.median(
                one["live"].get("receipt", 0) for one in self.samples if low <= one["asked"] < high
            ),
        )

    @property
    def stepped(self) -> list[str]:
        """Of each run in which the clock stepped how long it took, and how long by its report."""
        return [
            f"run {one['number']} took {one['took']:.1f} s, its report says {one['seconds']:.1f} s"
            for one in self.runs
            if len(self.clock.between(one["began"], one["ended"])) > 1
        ]

    def table(self, lines: int = 12) -> str:
        """Some lines of samples, as Markdown."""
        rows: list[tuple[object, ...]] = []
        each, before = max(1, len(self.samples) // lines), 0
        for one in self.samples[each - 1 :: each]:
            seconds = [run["took"] for run in self.runs[before : one["runs"]]]
            live, before = one["live"], one["runs"]
            rows.append(
                (
                    f"{one['seconds'] / 60:.1f}",
                    f"{one['clock']:+d} s",
                    one["runs"],
                    f"{statistics.median(seconds):.2f}" if seconds else "",
                    one["lag"],
                    one["fds"],
                    one["threads"],
                    f"{one['rss'] / 1e6:.0f}",
                    f"{one['children_rss'] / 1e6:.0f}",
                    one["ledger_end"],
                    one["tail"],
                    sum(live.values()),
                    live.get("receipt", 0),
                    live.get("summary", 0),
                    f"{one['ledger_disk'] / 1e6:.1f}",
                )
            )
        table = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
        return "\n".join([*table, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


class Copies:
    """The process that copies."""

    def __init__(self, folder: Path, configs: Sequence[Path], clock: SteppedClock) -> None:
        self._lines = folder / "runs.jsonl"
        self._complaints = folder / "copies.err"
        with self._complaints.open("wb") as complaints:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.steady.copies", *configs, self._lines],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                env={**environment(), **clock.environment},
                cwd=ROOT,
            )
        self._me = psutil.Process(self.process.pid)
        wait_until(lambda: self._lines.exists() or self.process.poll() is not None, "a first line of the process")
        self._file: IO[str] = self._lines.open()
        self._rest = ""

    def news(self) -> list[dict[str, Any]]:
        """The runs that have ended since it was asked last."""
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        return [json.loads(line) for line in lines]

    def sample(self) -> dict[str, int]:
        """What the process has now."""
        children = []
        for child in self._me.children(recursive=True):
            try:
                children.append(child.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
        return {
            "fds": self._me.num_fds(),
            "threads": self._me.num_threads(),
            "rss": self._me.memory_info().rss,
            "children": len(children),
            "children_rss": sum(children),
        }

    def ends_within(self, seconds: float) -> bool:
        """Wait for so long, or until it ends, which it should not; whether it has."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def finish(self) -> list[dict[str, Any]]:
        """Have it end its run, and end; the last runs."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.ends_within(ALIVE_S), "the last run does not end"
        assert self.process.returncode == 0, self.complaints[-2000:]
        return self.news()

    @property
    def complaints(self) -> str:
        """What it said on standard error."""
        return self._complaints.read_text(errors="replace")

    def close(self) -> None:
        """End it as it is."""
        self._file.close()
        for child in self._me.children(recursive=True) if self._me.is_running() else ():
            child.kill()
        self.process.kill()
        self.process.wait(ANSWER_S)


class Application:
    """A consumer group at the source, which reads and commits on a thread of its own."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "auto.commit.interval.ms": 1_000,
            }
        )
        self._consumer.subscribe([PLAIN, IDEMPOTENT, TRANSACTIONAL])
        self.read = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Commit, and leave the group."""
        self._end.set()
        self._thread.join(2 * ANSWER_S)

    def _work(self) -> None:
        while not self._end.is_set():
            self.read += sum(one.error() is None for one in self._consumer.consume(1_000, timeout=0.5))
        self._consumer.close()


@contextmanager
def clusters(folder: Path) -> Iterator[tuple[RunningCluster, RunningCluster]]:
    """A source with the writer's topics and a target, of one broker each."""
    specs = [ClusterSpec(name=f"steady-{name}", properties=BROKER) for name in ("source", "target")]
    source, target = up_all(specs, home=folder)
    try:
        create_topics(source, replicas=1)
        yield source, target
    finally:
        source.stop()
        target.stop()


def steady(folder: Path, *, seed: int, seconds: float, rate: int = RATE) -> Steady:
    """Work for so long, and compare all in the end; the record is in `folder`, too."""
    folder.mkdir(parents=True, exist_ok=True)
    record = Record(folder=folder, seed=seed)
    clock = SteppedClock(folder)
    found = Steady(record=record, clock=clock)
    with clusters(folder / "clusters") as (source, target):
        configs = _files(folder, source, target)
        ledger = LedgerWatch(target, ledger_topic("s"))
        writer = Writer(source, seed, rate, folder)
        application = Application(source)
        judge = Judge(source, target, configs[0], record, random.Random(seed))
        try:
            writer.tell("resume")
            copies = Copies(folder, configs, clock)
            try:
                _watch(found, copies, ledger, folder, seconds)
                # It stops while the writer goes on: so it has not read all.
                application.close()
                found.runs += copies.finish()
                found.complaints = copies.complaints
                ledger.read_on()
                found.live = dict(+ledger.live)
            finally:
                copies.close()
            writer.pause()
            wait_until(judge.source.is_settled, "a source that is settled", SETTLED_S)
            judge.round(1)
            record.say("group", name=GROUP, read=application.read, offsets=judge.standing(GROUP))
            judge.read_again()
            judge.find_aborted()
            send(producer(target), f"s.{IDEMPOTENT}", [Message(value=b"planted")])
            judge.find_planted()
        finally:
            application.close()
            ledger.close()
            writer.close()
            (folder / "record.md").write_text("\n".join([found.table(), "", *found.stepped]) + "\n")
    return found


def _watch(found: Steady, copies: Copies, ledger: LedgerWatch, folder: Path, seconds: float) -> None:
    """Sample until the time is over, and step the clock meanwhile."""
    began = time.monotonic()
    steps = [(began + seconds * (number + 1) / (len(STEPS) + 1), off) for number, off in enumerate(STEPS)]
    due = began + EACH_S
    while time.monotonic() < began + seconds:
        wanted = min([due, *(at for at, _ in steps[:1])])
        assert not copies.ends_within(max(0.0, wanted - time.monotonic())), copies.complaints[-2000:]
        if steps and time.monotonic() >= steps[0][0]:
            found.clock.step(steps.pop(0)[1])
            found.record.say("clock", off=found.clock.off)
        if time.monotonic() < due:
            continue
        due += EACH_S
        found.runs += copies.news()
        ledger.read_on()
        sample = {
            "asked": time.monotonic(),
            "seconds": round(time.monotonic() - began, 1),
            "clock": found.clock.off,
            "runs": len(found.runs),
            **copies.sample(),
            "lag": _lag(folder),
            "ledger_end": ledger.end,
            "tail": ledger.end - ledger.summarised,
            "ledger_disk": ledger.disk_bytes,
            "live_bytes": ledger.live_bytes,
            "live": dict(+ledger.live),
        }
        found.samples.append(sample)
        found.record.say("sample", **sample)


def _files(folder: Path, source: RunningCluster, target: RunningCluster) -> tuple[Path, Path]:
    """Ferry's file for the connections that stay open, which copies in one slot, and that for the commands."""
    (folder / "metrics").mkdir(exist_ok=True)
    found = []
    for slots in (1, 3):
        text = flow_text(source.bootstrap, target.bootstrap, slots=slots, chunk=256 << 20, replicas=1)
        text += f"ferry.metrics.folder = {folder / 'metrics'}\nferry.guard.clock.skew = skip\n"
        path = folder / f"{slots}-slots.properties"
        path.write_text(text)
        found.append(path)
    return found[0], found[1]


def _lag(folder: Path) -> int:
    """How many records the last run left, as its metrics say."""
    files = [one.read_text() for one in (folder / "metrics").glob("*.prom")]
    return int(
        sum(
            sample.value
            for text in files
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "ferry_lag_records"
        )
    )
