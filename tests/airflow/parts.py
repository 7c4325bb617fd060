"""The parts of an Airflow, to be killed and started again, and a run that is at work meanwhile."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import httpx
import psutil

from ferry.ledger.codec import decode_key
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.report import RunState
from ferry.ledger.run_codec import parse_attempt
from ferry.model import Attempt, Receipt
from ferry_airflow.home import LocalHome
from ferry_airflow.local import COMPONENTS, HEALTHY, PIDS_FILE, members, spawn
from ferry_airflow.rest import ENDED
from tests.airflow.rest import Rest
from tests.harness import Lab, create_topic, ledger_records, numbered, producer, send, whole_ledger
from tests.quotas import held
from tests.spark.jobs import all_gone, until
from tests.tiers import PATIENCE

RECORDS = 6_000
"""Of 3 kB each, in batches of twenty, each a chunk of its own."""

HELD_RATE = 50_000
"""Bytes a second, so that the copy takes six minutes; the first eleven seconds are there at once."""

BEATS = {name: f"latest_{name}_heartbeat" for name in HEALTHY if name != "metadatabase"}


@dataclass(kw_only=True)
class Parts:
    """The processes of an Airflow of the tests, to be killed and started again."""

    home: LocalHome
    _left: list[int] = field(default_factory=list)
    """Sessions whose leader was killed or suspended; what it started may live on."""

    def process(self, name: str) -> psutil.Process | None:
        """The part's first process, if it lives."""
        pid, _ = self._pids().get(name, (None, None))
        with suppress(psutil.NoSuchProcess):
            if pid is None:
                return None
            process = psutil.Process(int(pid))
            return process if process.status() != psutil.STATUS_ZOMBIE else None
        return None

    def kill(self, name: str, *, whole: bool = False) -> None:
        """Kill a part; `whole`: with all that it started, as when a container ends."""
        first = self.process(name)
        assert first is not None
        every = [first, *(members({first.pid}) if whole else ())]
        for process in every:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self._left.append(first.pid)
        all_gone(every)

    def stall(self, name: str) -> psutil.Process:
        """Suspend a part's first process, until the caller has it continue; `restore` ends it, and all it started."""
        first = self.process(name)
        assert first is not None
        first.suspend()
        self._left.append(first.pid)
        return first

    def start(self, name: str) -> None:
        """Start a part, which may have been started before."""
        started = spawn(self.home, name, self.home.environment)
        pids = self._pids()
        if name in pids:  # what stops Airflow looks for what both have started
            pids[f"{name} before {started[0]}"] = pids[name]
        pids[name] = started
        (self.home.path / PIDS_FILE).write_text(json.dumps(pids))

    def start_missing(self) -> None:
        """Start each part that is gone."""
        for name in COMPONENTS:
            if self.process(name) is None:
                self.start(name)

    def health(self) -> dict[str, dict[str, str]]:
        """How Airflow finds its parts; empty while its API server does not say."""
        with suppress(httpx.HTTPError, ValueError):
            answer = httpx.get(f"{self.home.url}/api/v2/monitor/health", timeout=10 * PATIENCE)
            found: dict[str, dict[str, str]] = answer.json() if answer.is_success else {}
            return found
        return {}

    def wait_at_work(self) -> None:
        """Wait until each part gives a sign of life; whichever ends by then is started again."""
        since = datetime.now(UTC)

        def beats() -> bool:
            self.start_missing()
            found = self.health()
            last = [found.get(name, {}).get(beat) for name, beat in BEATS.items()]
            return all(beat is not None and datetime.fromisoformat(beat) > since for beat in last)

        until(beats, "signs of life of all parts")

    def wait_given_up(self) -> None:
        """Wait until Airflow takes its scheduler for dead: from then on the next one begins its tasks again."""
        until(lambda: self.health().get("scheduler", {}).get("status") == "unhealthy", "a scheduler taken for dead")

    def restore(self) -> None:
        """Make Airflow whole again, whatever a test did with it."""
        self.wait_at_work()
        for process in members(set(self._left)):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _pids(self) -> dict[str, list[float]]:
        file = self.home.path / PIDS_FILE
        pids: dict[str, list[float]] = json.loads(file.read_text()) if file.exists() else {}
        return pids


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """A run whose copy is slow until it is released."""

    rest: Rest
    lab: Lab
    dag: str
    topic: str
    run: str
    begun: psutil.Process | None
    """The process that the first receipt names, of a task or of the triggerer; None: it has ended by now."""
    release: Callable[[], None]

    @property
    def task(self) -> psutil.Process:
        """That process, where it must live."""
        assert self.begun is not None
        return self.begun

    @property
    def ended(self) -> bool:
        """Whether Airflow has ended the run."""
        return self.rest.run(self.dag, self.run)["state"] in ENDED

    def receipts(self) -> list[Receipt]:
        """What the run has committed."""
        return [receipt for receipt in self.lab.receipts() if receipt.origin.dag_run_id == self.run]

    def attempts(self) -> list[Attempt]:
        """The attempts at the run, in their order."""
        with self.lab.runs() as runs:
            records, _ = ledger_records(runs)
        found = [
            parse_attempt(decode_key(record.key)[2], record.offset, json.loads(record.value))
            for record in records
            if record.value is not None and decode_key(record.key)[:1] == ["attempt"]
        ]
        return [one for one in found if one.origin.dag_run_id == self.run and not one.ended]

    def tries(self) -> dict[int, str | None]:
        """The states of the copy task's tries."""
        return self.rest.tries(self.dag, self.run, "copy")

    def assert_half_done(self) -> None:
        """Neither the ledger nor Airflow takes the run for done."""
        assert not self.ended
        assert sum(receipt.records for receipt in self.receipts()) < RECORDS, "the copy was not held"
        assert "success" not in self.tries().values()

    def assert_done(self, *, kept: bool | None) -> None:
        """The run ends right: with the copy task's first try where that is `kept`, else with a later one; None: either.

        While no API server answers, each later try fails, too, within seconds and without a delay before the next one.
        How many do depends on how long the server takes to start.
        """
        assert self.rest.wait_run(self.dag, self.run, seconds=300) == "success"
        states = self.rest.states(self.dag, self.run)
        assert states == dict.fromkeys(("plan", "copy", "checkpoint", "report"), "success")
        found = dict(sorted(self.tries().items()))
        *given_up, ended = found.values()
        assert (set(given_up) <= {"failed"}, ended) == (True, "success"), found
        assert kept in (None, not given_up), found

        receipts = self.receipts()
        self._assert_shut_out()
        assert {receipt.origin.try_number for receipt in receipts} <= found.keys()
        assert sum(receipt.records for receipt in receipts) == RECORDS
        with self.lab.runs() as runs:
            report = runs.report(self.run)
            assert not whole_ledger(runs).open
        assert (report.state, report.records, report.unfinished) == (RunState.SUCCESS, RECORDS, ())
        last = max(self.rest.tries(self.dag, self.run, "report"))
        assert self.topic in self.rest.log(self.dag, self.run, "report", last)
        assert self.lab.assert_equal() % RECORDS == 0
        until(lambda: not job_processes(self.run), "the end of Spark")

    def _assert_shut_out(self) -> None:
        """In each slot, all that an attempt has committed comes before what the next one has.

        One process may make several attempts, so the origins of receipts do not show it without the ledger's attempts.
        """
        with self.lab.runs() as runs:
            records = [record for _, record in whole_ledger(runs).of_kind("receipt")]
        attempts, left = self.attempts(), dict[int, list[Attempt]]()
        for offset, receipt in [(record.offset, read_as(record, parse_receipt)) for record in records]:
            if receipt.origin.dag_run_id == self.run:
                later = left.setdefault(receipt.slot, list(attempts))
                while later and later[0].origin != receipt.origin:
                    later.pop(0)
                assert later, "an attempt wrote after it was shut out"
                assert later[0].number < offset, "an attempt wrote before it began"


@contextmanager
def working(
    rest: Rest, parts: Parts, lab: Lab, dag: str, topic: str, before: Callable[[], None] = lambda: None
) -> Iterator[AtWork]:
    """A run of 6,000 records whose copy has committed something and is slow; it has ended when the block has.

    `before` is called when the run is there, and before anything is committed.
    """
    create_topic(lab.source, topic, 4)
    send(producer(lab.source, batch_num_messages=20), topic, numbered(RECORDS, partitions=4, size=3_000))
    with held(lab, HELD_RATE) as release:
        run = rest.trigger(dag)
        try:
            before()
            rest.wait_task(dag, run, "copy", ("running", "deferred"))
            found = partial(_first, lab, run)
            until(lambda: found() is not None, "a first receipt")
            first = found()
            assert first is not None
            begun = None
            with suppress(psutil.NoSuchProcess):
                begun = psutil.Process(int(first.origin.host.rpartition(":")[2]))
            yield AtWork(rest=rest, lab=lab, dag=dag, topic=topic, run=run, begun=begun, release=release)
        finally:
            parts.start_missing()
            if rest.run(dag, run)["state"] not in ENDED:
                rest.fail(dag, run)
                rest.wait_run(dag, run)


def job_processes(run: str) -> list[psutil.Process]:
    """Processes of the run's Spark job."""
    return [process for process in psutil.process_iter() if run in arguments(process)]


def arguments(process: psutil.Process) -> list[str]:
    """A process's command line; empty when it has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _first(lab: Lab, run: str) -> Receipt | None:
    return next((receipt for receipt in lab.receipts() if receipt.origin.dag_run_id == run), None)
