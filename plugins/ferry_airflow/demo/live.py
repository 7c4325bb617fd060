"""`python -m ferry_airflow.demo.live BOOTSTRAP HOME [--alone]`: producers that run until they are stopped.

Without `--alone` they end with the process that started them.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from ferry_airflow.demo.data import feed


def main(arguments: list[str]) -> None:
    """Produce until SIGTERM, or until the parent has ended."""
    parent, alone = os.getppid(), "--alone" in arguments
    told = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal told
        told = True

    signal.signal(signal.SIGTERM, stop)
    feed(arguments[0], lambda: told or (not alone and os.getppid() != parent))


if __name__ == "__main__":
    main(sys.argv[1:])
