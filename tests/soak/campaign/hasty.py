"""The program `ferry`, whose waits for late markers take seconds here, and which may die or sleep at a request.

```
CAMPAIGN_TRAP="HOW WHEN REQUEST COUNT FILE"
HOW      kill: SIGKILL for the process that is at this request; kill-run, stop-run: SIGKILL or SIGSTOP for the whole run
WHEN     before: the last check was made, and nothing was sent; after: it is on its connection, and not answered
REQUEST  a class of kafka.protocol
COUNT    which one of a process, from 1
FILE     is made when it happens; the first process of a run that comes there takes it
```

A target must have a `connections.max.idle.ms` of IDLE_MS, and no fault may hold bytes back for longer than LATE_MS.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ferry.features.identical.acts import markers
from ferry.features.identical.rules import planned
from ferry.kafka.connect.cluster import Cluster
from ferry.program import main as ferry
from ferry.run import local, worker

IDLE_MS = 10_000
LATE_MS = 30_000
"""How late a marker may arrive: what Ferry adds to IDLE_MS is less than an hour here."""
MARKING_MS, APART_MS = 6_000, 2_000
TRAP = "CAMPAIGN_TRAP"


def serve_apart(pipe: Connection, levels: dict[str, int]) -> None:
    """Serve a slot as a process of this program."""
    hasten()
    set_trap()
    worker.serve_apart(pipe, levels)


def hasten() -> None:
    """Have this process wait for seconds where Ferry waits for minutes."""
    planned.MARGIN_MS = LATE_MS - IDLE_MS
    markers.MARKING_MS, markers.APART_MS = MARKING_MS, APART_MS


def set_trap() -> None:
    """Have this process end or stop at the request that the environment names."""
    words = os.environ.get(TRAP, "").split()
    if not words:
        return
    how, when, wanted, count, file = words
    submit, left = Cluster.submit, [int(count)]

    def come(request: Any) -> None:
        if type(request).__name__ != wanted:
            return
        left[0] -= 1
        if left[0] == 0 and _is_first(Path(file)):
            _end(how)

    async def trapped(
        cluster: Cluster,
        request: Any,
        node: int | None = None,
        *,
        timeout_ms: float | None = None,
        before: Callable[[], None] = lambda: None,
    ) -> Any:
        def checked() -> None:
            before()
            if when == "before":
                come(request)

        answer = await submit(cluster, request, node, timeout_ms=timeout_ms, before=checked)
        if when == "after":
            come(request)
        return answer

    Cluster.submit = trapped  # type: ignore[assignment, method-assign]


def _is_first(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _end(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os.killpg(0, signal.SIGKILL if how == "kill-run" else signal.SIGSTOP)


def main() -> None:
    """Be `ferry`."""
    local.serve_apart = serve_apart  # type: ignore[assignment, attr-defined]
    hasten()
    set_trap()
    ferry()
