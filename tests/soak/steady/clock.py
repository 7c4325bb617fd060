"""A wall clock that steps, of one process and its children alone (clock.c)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import installed

SOURCE = Path(__file__).with_name("clock.c")


@dataclass
class SteppedClock:
    """How far a process's wall clock is off the machine's, and how far it was."""

    folder: Path
    steps: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    """When it was set (time.monotonic()), and to how many seconds off."""

    def __post_init__(self) -> None:
        """Build what is preloaded; the test fails where no C compiler is, or where it does not set a clock."""
        subprocess.run(
            [installed("cc", "gcc"), "-shared", "-fPIC", "-O2", "-Wall", "-o", self._library, SOURCE, "-ldl"],
            check=True,
        )
        self._file.write_bytes(bytes(8))
        for seconds in (7200, -7200, 0):
            self.step(seconds)
            printed = subprocess.run(
                [
                    sys.executable,
                    "-c",
                    "import datetime, time; print(time.time(), datetime.datetime.now().timestamp())",
                ],
                env={**os.environ, **self.environment},
                capture_output=True,
                text=True,
                check=True,
            )
            off = [float(word) - time.time() - seconds for word in printed.stdout.split()]
            assert len(off) == 2, printed
            assert all(abs(one) < 60 for one in off), f"the library does not set a process's clock: {off}"
        del self.steps[1:]

    @property
    def environment(self) -> dict[str, str]:
        """What a process has this clock by."""
        return {"LD_PRELOAD": str(self._library), "STEPPED_CLOCK": str(self._file)}

    @property
    def off(self) -> int:
        """By how many seconds it is off now."""
        return self.steps[-1][1]

    def step(self, seconds: int) -> None:
        """Set it so many seconds off."""
        with self._file.open("r+b") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))
        self.steps.append((time.monotonic(), seconds))

    def between(self, begin: float, end: float) -> set[int]:
        """By how many seconds it was off between two times (time.monotonic())."""
        last = [seconds for at, seconds in self.steps if at <= begin][-1]
        return {last, *(seconds for at, seconds in self.steps if begin < at <= end)}

    @property
    def _library(self) -> Path:
        return self.folder / "clock.so"

    @property
    def _file(self) -> Path:
        return self.folder / "clock"
