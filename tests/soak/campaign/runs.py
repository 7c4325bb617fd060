"""Ferry at work: one process after the other copies the flow, in all the ways that there are, while faults happen."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ferry.run.spark.submit import submit_conf
from tests.program import PROGRAM, Begun, environment, warm_start
from tests.soak.campaign.field import FLOW, Field
from tests.soak.campaign.hasty import TRAP
from tests.soak.campaign.record import Record
from tests.tiers import ANSWER_S, PATIENCE

HUNG_S = 300 * PATIENCE
"""A run that lives for longer after its begin, and after the copies last grew, hangs; frozen time does not count."""

LEFT_S = 45 * PATIENCE
"""How long processes of a run that was killed may live on: the longest is a transaction's end."""

BEGUN_S = 30 * PATIENCE
"""Within it the program begins on a busy machine, and from then on SIGTERM ends it with a report."""

CODES = {0, 1, 2, 3, 130, 143, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT}
EXPECTED = {"unfinished", "slot-failed", "no-leader", "too-few-replicas", "storage-error"}
"""What a run may refuse while brokers come and go; anything else would be about the records."""

NOT_QUIET = "identical.not-quiet"
"""The one refusal of identical offsets that faults explain."""

ROOT = Path(__file__).resolve().parents[3]
PLAN = """
import sys
from pathlib import Path
from ferry.config.settings import load
from ferry.run.micro_run import MicroRuns, local_origin
with MicroRuns(load(Path(sys.argv[1])).flow(sys.argv[2])) as runs:
    runs.open_run(sys.argv[3], local_origin())
"""


def program_of(*, identical: bool) -> str:
    """The module that is the program: with identical offsets one that waits for seconds instead of minutes."""
    return "tests.soak.campaign.hasty" if identical else "ferry.program"


@dataclass
class Run:
    """A process of Ferry and what belongs to it: all that is in its session."""

    number: int
    kind: str
    process: subprocess.Popen[bytes] | Begun
    out: Path
    began: float
    frozen: float = 0.0
    touched: bool = False
    """Whether a fault was aimed at its processes."""
    trapped: bool = False
    """Whether a trap waits for it."""

    @property
    def sprung(self) -> Path:
        """The file that is made when it comes into its trap."""
        return self.out.with_suffix(".trap")

    @property
    def is_spark(self) -> bool:
        """Whether a JVM is part of it."""
        return self.kind in ("spark", "job")

    def members(self) -> list[psutil.Process]:
        """All processes of its session that live."""
        found = []
        for pid in psutil.pids():
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getsid(pid) == self.process.pid:
                    process = psutil.Process(pid)
                    if process.status() != psutil.STATUS_ZOMBIE:
                        found.append(process)
        return found

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to all of them."""
        for process in self.members():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


class Runner:
    """Starts the next run when one has ended, on a thread of its own, and looks at how each ended."""

    def __init__(self, place: Field, record: Record, rng: random.Random, folder: Path, *, spark: bool) -> None:
        """`folder` has what the runs say; without `spark` none takes a JVM."""
        self._field = place
        self._record = record
        self._rng = rng
        self._folder = folder
        self._kinds = ["run"] * 8 + ["resume"] * 2 + (["spark", "job"] * 2 if spark else [])
        self._count = 0
        self._unfinished = ""
        self._trap = ""
        self._go = threading.Event()
        self._rests = threading.Event()
        self._ended = threading.Event()
        self.current: Run | None = None
        self.grown_at = 0.0
        """When the copies last grew, as time.monotonic() says."""
        self._thread = threading.Thread(target=self._work, name="runner", daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Run after run from now on."""
        self._rests.clear()
        self._go.set()

    def rest(self) -> None:
        """Begin no further run, and wait until the last one has ended."""
        self._go.clear()
        assert self._rests.wait(HUNG_S + 4 * ANSWER_S), "the runner does not come to rest"

    def close(self) -> None:
        """Begin no further run, and end the one that is there."""
        self._ended.set()
        self._go.set()
        run = self.current
        if run is not None:
            run.signal_all(signal.SIGKILL)
        self._thread.join(2 * ANSWER_S)

    def look_for_spark(self, faults: int) -> None:
        """Of very many runs some in Spark came to their end, and copied something."""
        if faults < 300:
            return
        for kind in ("spark", "job"):
            if not self._record.runs[f"{kind}, exit 0"]:
                self._record.anomaly(f"no {kind} run came to its end")
        if not self._record.copied["spark"]:
            self._record.anomaly("no record was copied by Spark")

    def trap(self, text: str) -> None:
        """Have the next run that begins by itself come into a trap: HOW WHEN REQUEST COUNT of `hasty`. Empty: none."""
        self._trap = text

    def start(self, kind: str, trap: str = "") -> Run:
        """A run beside all others."""
        self._count += 1
        number = self._count
        config = self._field.configs[self._rng.choice(list(self._field.configs))]
        name = f"run-{number}"
        command: list[str | Path] = [PROGRAM, "run", FLOW, "--json", "--run", name]
        if kind == "resume":
            command = [PROGRAM, "run", FLOW, "--json", "--resume", self._unfinished]
        elif kind == "spark":
            command.append("--spark")
        elif kind == "job":
            plan: list[str | Path] = [sys.executable, "-c", PLAN, config, FLOW, name]
            shell = '"$1" -c "$3" "$4" "$5" "$6" && shift 6 && exec "$@"'
            command = ["sh", "-c", shell, "sh", *plan, *self._submitted(config, name)]
        out = self._folder / f"{number}-{kind}"
        variables = {**environment(config), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        if trap:
            variables[TRAP] = f"{trap} {out.with_suffix('.trap')}"
        process = self._begun(command, out, variables)
        self._record.say("run", number=number, kind=kind, config=config.stem, trap=trap)
        return Run(number=number, kind=kind, process=process, out=out, began=time.monotonic(), trapped=bool(trap))

    def _begun(
        self, command: Sequence[str | Path], out: Path, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | Begun:
        answer, complaints = out.with_suffix(".out"), out.with_suffix(".err")
        if self._field.identical:  # more runs, which begin at once
            program = program_of(identical=True)
            return warm_start(*command[1:], out=answer, err=complaints, variables=variables, program=program)
        with answer.open("wb") as to, complaints.open("wb") as errors:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=errors,
                env=variables,
                start_new_session=True,
                cwd=ROOT,
            )

    def _submitted(self, config: Path, name: str) -> list[str | Path]:
        settings = [f"--conf={key}={value}" for key, value in submit_conf(ROOT / ".spark").items()]
        submit = Path(sys.executable).with_name("spark-submit")
        job: list[str | Path] = [ROOT / "jobs" / "copy_job.py", f"--config={config}", f"--flow={FLOW}", f"--run={name}"]
        return [submit, "--master=local[2]", *settings, *job]

    def see_through(self, run: Run) -> None:
        """Wait for a run's end, and for that of all its processes; what is not as it should be is an anomaly."""
        while run.process.poll() is None:
            if time.monotonic() - max(run.began, self.grown_at) - run.frozen > HUNG_S:
                self._record.anomaly(f"run {run.number} ({run.kind}) hangs")
                run.signal_all(signal.SIGCONT)
                run.signal_all(signal.SIGKILL)
                run.process.wait()
                break
            time.sleep(0.1)
        seconds = time.monotonic() - run.began - run.frozen
        self._record.longest_run = max(self._record.longest_run, seconds)
        if run.trapped:  # one of its processes may have stopped in the trap after another fault had ended the run
            run.signal_all(signal.SIGCONT)
        until = time.monotonic() + LEFT_S
        while (left := run.members()) and time.monotonic() < until:
            time.sleep(0.2)
        if left:
            names = [" ".join(process.cmdline())[:120] for process in left if process.is_running()]
            self._record.anomaly(f"run {run.number} ({run.kind}) left {names} behind")
            run.signal_all(signal.SIGKILL)
        self._look(run, seconds)

    def _look(self, run: Run, seconds: float) -> None:
        code = run.process.returncode
        out = run.out.with_suffix(".out").read_text(errors="replace")
        err = run.out.with_suffix(".err").read_text(errors="replace")
        self._record.runs[f"{run.kind}, exit {code}"] += 1
        body = _json(out) if run.kind != "job" else {}
        kinds = {row["kind"] for row in body.get("refusals", ())}
        self._record.say(
            "ended", number=run.number, kind=run.kind, code=code, seconds=round(seconds, 1), state=body.get("state")
        )
        if code not in CODES:
            self._record.anomaly(f"run {run.number} ({run.kind}) ended with exit code {code}")
        if not run.is_spark and "Traceback" in err:
            self._record.anomaly(f"run {run.number} ({run.kind}) has a traceback")
        said = err + (out if run.kind == "job" else "")  # a job says all in Spark's output
        if code == 2 and not any(
            word in said
            for word in ("superseded", "exists already", "has no plan", "no record of run", "there is no ledger")
        ):
            self._record.anomaly(f"run {run.number} ({run.kind}) was refused: {said.strip()[-300:]}")
        codes = {row.get("code", "") for row in body.get("refusals", ())}
        codes = {code for code in codes if code.startswith("identical.")}
        if codes - {NOT_QUIET}:
            self._record.anomaly(f"run {run.number} ({run.kind}) refused {sorted(codes)}")
        if kinds - EXPECTED:
            self._record.anomaly(f"run {run.number} ({run.kind}) refused {sorted(kinds - EXPECTED)}")
        if run.kind != "job" and code in (0, 1) and not body:
            self._record.anomaly(f"run {run.number} ({run.kind}) ended with {code}, and without a report")
        if run.kind != "job" and code == -signal.SIGTERM and seconds > BEGUN_S:
            self._record.anomaly(f"run {run.number} ({run.kind}) was ended by SIGTERM without a report")
        self._record.copied[run.kind] += body.get("records") or 0
        told = [row["message"] for row in body.get("refusals", ())]
        if body.get("superseded_by") and any(f"--resume {body['run']}" in sentence for sentence in told):
            self._record.anomaly(f"run {run.number} is superseded and advises its own --resume")
        if run.kind == "run":
            self._unfinished = f"run-{run.number}" if code else ""

    def _work(self) -> None:
        while not self._ended.is_set():
            if not self._go.is_set():
                self._rests.set()
            self._go.wait()
            if self._ended.is_set():
                return
            kind = self._rng.choice(self._kinds)
            if kind == "resume" and not self._unfinished:
                kind = "run"
            trap, self._trap = self._trap, ""
            run = self.current = self.start(kind, trap)
            self.see_through(run)
            self.current = None


def _json(text: str) -> dict[str, Any]:
    try:
        body: dict[str, Any] = json.loads(text)
    except ValueError:
        return {}
    return body
