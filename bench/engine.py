"""A part of Ferry in a process of its own, so that its CPU and memory can be told apart from all else.

    python bench/engine.py plan CONFIGURATION RUN SPECS     plan a run; write what each slot needs to the file SPECS
    python bench/engine.py slot SPECS SLOT                  copy one slot, when a line arrives on standard input
    python bench/engine.py whole CONFIGURATION RUN          a whole micro-run: plan, every slot, report
    python bench/engine.py verify CONFIGURATION             compare both clusters, when a line arrives on standard input
    python bench/engine.py readiness CONFIGURATION          whether the target could take over

Each prints one line of JSON: what it took, and its result.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from dataclasses import asdict
from pathlib import Path

from usage import Stopwatch, Usage, peak_mb

from ferry.config.settings import load
from ferry.copy.task import SlotTask, run_slot
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.run.micro_run import MicroRuns, local_origin


def plan(configuration: Path, run: str, specs: Path) -> dict[str, object]:
    """Open and plan a run of the file's only flow."""
    began = time.monotonic()
    (flow,) = load(configuration).flows
    with MicroRuns(flow) as runs:
        decided = runs.open_run(run, local_origin())
        attempt = runs.begin(decided, local_origin())
        told = {slot: runs.slot_task(decided, slot, attempt) for slot in decided.used_slots}
    specs.write_bytes(pickle.dumps(told))
    assert not decided.refusals, decided.refusals
    return {"usage": _since_start(began), "slots": list(told), "slices": len(decided.slices)}


def slot(specs: Path, number: int) -> dict[str, object]:
    """Copy one slot; the time counts from the line on standard input."""
    told: dict[int, SlotTask] = pickle.loads(specs.read_bytes())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    watch = Stopwatch()
    result = run_slot(told[number], lambda: False, lambda receipts: None)
    usage = watch.usage()
    assert not result.refusals, result.refusals
    return {
        "usage": asdict(usage),
        "records": sum(receipt.records for receipt in result.receipts),
        "bytes": sum(receipt.bytes for receipt in result.receipts),
        "retries": result.retries,
    }


def whole(configuration: Path, run: str) -> dict[str, object]:
    """Plan, copy slot after slot, and report."""
    began = time.monotonic()
    (flow,) = load(configuration).flows
    with MicroRuns(flow) as runs:
        decided = runs.open_run(run, local_origin())
        attempt = runs.begin(decided, local_origin())
        for number in decided.used_slots:
            run_slot(runs.slot_task(decided, number, attempt), lambda: False, lambda receipts: None)
        report = runs.report(run)
    return {"usage": _since_start(began), "state": report.state, "records": report.records}


def verify(configuration: Path) -> dict[str, object]:
    """Compare all that the file's only flow has copied; the time counts from the line on standard input."""
    (flow,) = load(configuration).flows
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    watch = Stopwatch()
    with Verifier(flow, Wanted()) as verifier:
        found = verifier.survey()
        result = verifier.sum_up(found, verifier.compare(found))
    usage = watch.usage()
    assert result.is_equal, result
    return {"usage": asdict(usage), "records": result.records, "bytes": result.bytes}


def readiness(configuration: Path) -> dict[str, object]:
    """Run all checks of the file's only flow; it has no opposite flow, and needs none here."""
    began = time.monotonic()
    (flow,) = load(configuration).flows
    found = check_readiness(flow, Rpo(records=0), back=True)
    failed = [check.message for check in found.failed]
    return {"usage": _since_start(began), "partitions": found.partitions, "failed": failed}


def _since_start(began: float) -> dict[str, float]:
    """Return what this process has taken: all CPU, its imports included."""
    return asdict(Usage(wall=time.monotonic() - began, cpu=time.process_time(), peak_mb=peak_mb()))


def main(arguments: list[str]) -> None:
    """Do what the first argument names."""
    match arguments:
        case ["plan", configuration, run, specs]:
            outcome = plan(Path(configuration), run, Path(specs))
        case ["slot", specs, number]:
            outcome = slot(Path(specs), int(number))
        case ["verify", configuration]:
            outcome = verify(Path(configuration))
        case ["readiness", configuration]:
            outcome = readiness(Path(configuration))
        case ["whole", configuration, run]:
            outcome = whole(Path(configuration), run)
        case _:
            sys.exit(__doc__)
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
