"""Ferry at work for long: micro-runs one after the other in this one process, until standard input ends.

```
python -m tests.soak.steady.copies SESSION_CONFIG COMMAND_CONFIG RUNS
```

No command of Ferry's goes on for ever. So most runs go through connections that stay open throughout, by the function
that `ferry run` and `ferry backfill` copy with; each tenth is a whole `ferry run` in this process, which opens
connections of its own. A line of JSON for each run goes to the file RUNS.
"""

from __future__ import annotations

import gc
import io
import json
import logging
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import psutil

from ferry import program
from ferry.commands.copying import finish_run
from ferry.commands.forms import run_json
from ferry.config.settings import load
from ferry.copy.transcode_pool import THREAD
from ferry.features.observe.acts.after_run import publish_run
from ferry.run.micro_run import MicroRuns, local_origin
from tests.soak.campaign.field import FLOW

COMMAND_EACH = 10
"""Each so manieth run is a `ferry run`."""

KEPT = ("run", "state", "records", "seconds", "refusals", "notes", "groups")
"""What is kept of a run's report."""


def main() -> None:
    """Copy until standard input ends."""
    session, command, runs = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    over = threading.Event()
    threading.Thread(target=_wait, args=(over,), daemon=True).start()
    me, number = psutil.Process(), 0
    with runs.open("a", buffering=1) as lines, MicroRuns(load(session).flow(FLOW)) as held:
        while not over.is_set():
            number += 1
            name, began, used = f"steady-{number}", time.monotonic(), time.process_time()
            is_command = number % COMMAND_EACH == 0
            code, body = by_command(command, name) if is_command else in_session(held, name)
            ended, spent = time.monotonic(), time.process_time() - used
            gc.collect()
            line = {
                "number": number,
                "kind": "command" if is_command else "session",
                "began": began,
                "ended": ended,
                "took": ended - began,
                "code": code,
                **{key: body.get(key) for key in KEPT},
                "receipts": len(body.get("receipts", ())),
                "cpu": spent,
                # At rest: no run is under way.
                "fds": me.num_fds(),
                "threads": me.num_threads() - _transcoding(),
                "rss": me.memory_info().rss,
                "blocks": sys.getallocatedblocks(),
                "children": len(me.children()),
            }
            lines.write(json.dumps(line) + "\n")


def _transcoding() -> int:
    """How many threads transcode large batches: one for the process, from the first such batch on, to its end."""
    return sum(one.name.startswith(THREAD) for one in threading.enumerate())


def _wait(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


def in_session(runs: MicroRuns, name: str) -> tuple[int, dict[str, Any]]:
    """A run through connections that are open: the exit code that `ferry run` would have, and its JSON."""
    plan = runs.open_new(name, local_origin())
    report, failure = finish_run(runs, plan, quiet=True)
    publish_run(runs.flow, report)
    body = run_json(report)
    return int(failure is not None or body["state"] != "success"), body


def by_command(config: Path, name: str) -> tuple[int, dict[str, Any]]:
    """`ferry run` in this process: its exit code and its JSON."""
    code: object = 0
    with redirect_stdout(io.StringIO()) as told:
        try:
            program.main(["run", FLOW, "--config", str(config), "--run", name, "--json", "--quiet"])
        except SystemExit as end:
            code = end.code
    return int(str(code or 0)), json.loads(told.getvalue() or "{}")


if __name__ == "__main__":
    main()
