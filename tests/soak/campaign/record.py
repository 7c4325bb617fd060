"""What the campaign found: a line of JSON for each thing as it happens, and tables at the end."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Record:
    """All that is to be known afterwards. Threads may write to it."""

    folder: Path
    seed: int
    anomalies: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    copied: Counter[str] = field(default_factory=Counter)
    """Records by the kind of run that says so; a job writes no report."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """By fault, from its begin until the copies next grew."""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    longest_run: float = 0.0
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, what: str, **values: Any) -> None:
        """One line of the log."""
        line = {"at": round(time.monotonic() - self._began, 2), "what": what, **values}
        with self._lock, (self.folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(line, default=str) + "\n")

    def anomaly(self, sentence: str) -> None:
        """What should not be."""
        self.anomalies.append(sentence)
        self.say("anomaly", sentence=sentence)

    def progressed(self, fault: str, seconds: float) -> None:
        """How long nothing more was copied after a fault."""
        self.seconds.setdefault(fault, []).append(seconds)

    def write(self) -> Path:
        """The tables, as Markdown."""
        minutes = (time.monotonic() - self._began) / 60
        total = sum(self.faults.values())
        head = (
            f"{total} faults in {minutes:.0f} minutes, seed {self.seed}; {sum(self.runs.values())} runs, the longest "
            f"{self.longest_run:.0f} s; {len(self.rounds)} judged rounds; {len(self.anomalies)} anomalies."
        )
        lines = [
            head,
            "",
            "| fault | number | measured | median s | most s |",
            "|---|---|---|---|---|",
        ]
        for name, number in self.faults.most_common():
            found = self.seconds.get(name, [])
            figures = f"{statistics.median(found):.0f} | {max(found):.0f}" if found else " | "
            lines.append(f"| `{name}` | {number} | {len(found)} | {figures} |")
        lines += ["", "| run | number |", "|---|---|", *(f"| {name} | {n} |" for name, n in self.runs.most_common())]
        lines += ["", "| run | records that its report has |", "|---|---|"]
        lines += [f"| {name} | {n} |" for name, n in self.copied.most_common() if n]
        if self.rounds:
            names = list(self.rounds[0])
            lines += ["", f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
            lines += [f"| {' | '.join(str(one.get(name, '')) for name in names)} |" for one in self.rounds]
        lines += ["", *(f"- {sentence}" for sentence in self.anomalies)]
        path = self.folder / "record.md"
        path.write_text("\n".join(lines).rstrip() + "\n")
        return path
