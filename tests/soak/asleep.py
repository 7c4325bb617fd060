"""The program `ferry`, which falls asleep in steps of a switch: `asleep.py STEP,STEP... REQUESTS ARGUMENT...`.

In each of the steps it stops its process group (SIGSTOP) once: when the step has made that many requests, or at its
end if it makes fewer. It is begun in the ledger then, and not done. It does not stop right before an OffsetCommit: what
is on the wire then counts, and no check comes after (docs/internals/switch-soak.md).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection
from typing import Any

from ferry.features.switch.acts import engine
from ferry.features.switch.acts.engine import Act, StillMine
from ferry.features.switch.acts.journal import Journal
from ferry.kafka.connect.cluster import Cluster
from ferry.model.switch import Evidence, Step, SwitchState
from ferry.program import main


def fall_asleep(steps: Collection[str], requests: int) -> None:
    """Have this process stop in each of the steps."""
    do, submit, left = engine.do_step, Cluster.submit, [-1]

    def sleep() -> None:
        left[0] = -1
        os.killpg(0, signal.SIGSTOP)

    async def counted(
        cluster: Cluster, request: Any, node: int | None = None, *, timeout_ms: float | None = None
    ) -> Any:
        if left[0] == 0 and type(request).__name__ != "OffsetCommitRequest":
            sleep()
        left[0] -= left[0] > 0
        return await submit(cluster, request, node, timeout_ms=timeout_ms)

    def do_asleep(journal: Journal, switch: str, step: Step, act: Act) -> SwitchState:
        def watched(state: SwitchState, still_mine: StillMine) -> Evidence:
            left[0] = requests
            found = act(state, still_mine)
            if left[0] >= 0:
                sleep()
            return found

        return do(journal, switch, step, watched if step in steps else act)

    Cluster.submit = counted  # type: ignore[assignment, method-assign]
    engine.do_step = do_asleep


if __name__ == "__main__":  # what copies is begun as a process that imports this file
    fall_asleep(sys.argv[1].split(","), int(sys.argv[2]))
    del sys.argv[1:3]
    main()
