"""The tables: medians over the pairs, and each ratio as the median of the ratios within a pair."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import psutil
from scenarios import Limit, Pair, Ratio, Scenario

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def machine() -> str:
    """Describe the machine in a sentence."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = round(psutil.virtual_memory().total / (1 << 30))
    return (
        f"{os.cpu_count()} cores ({model}), {memory} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}; both brokers (Kafka 4.3.0, one each) on the same cores."
    )


def table(scenario: Scenario, pairs: Sequence[Pair]) -> str:
    """Make a Markdown table of one scenario's measures and aims.

    A pair may lack a measure that could not be taken. Its row then says in how many pairs it was.
    """
    lines = [
        f"### {scenario.title[0].upper()}{scenario.title[1:]}",
        "",
        "| | wall s | CPU-s | peak MB |",
        "|---|---|---|---|",
    ]
    for measure in dict.fromkeys(measure for pair in pairs for measure in pair):
        taken = [pair[measure] for pair in pairs if measure in pair]
        wall, cpu, peak = (median(getattr(usage, what) for usage in taken) for what in ("wall", "cpu", "peak_mb"))
        name = measure if len(taken) == len(pairs) else f"{measure} (in {len(taken)} of {len(pairs)} pairs)"
        lines.append(f"| {name} | {wall:.2f} | {f'{cpu:.2f}' if cpu else ''} | {f'{peak:.0f}' if peak else ''} |")
    lines += ["", "| aim | wanted | measured, median | in each pair |", "|---|---|---|---|"]
    lines += [_aim_row(aim, pairs) for aim in scenario.aims]
    return "\n".join(lines) + "\n"


def _aim_row(aim: Ratio | Limit, pairs: Sequence[Pair]) -> str:
    if isinstance(aim, Limit):
        values = [getattr(pair[aim.measure], aim.what) for pair in pairs if aim.measure in pair]
        wanted = f"{aim.aim:g}"
    else:
        both = [(pair[aim.above], pair[aim.below]) for pair in pairs if {aim.above, aim.below} <= pair.keys()]
        values = [getattr(above, aim.what) / getattr(below, aim.what) for above, below in both]
        wanted = f"1/{1 / aim.aim:g}" if aim.aim < 1 else f"{aim.aim:g}"
    if not values:
        return f"| {aim.name} | {wanted} | not measured | |"
    shown = [_ratio(value) if isinstance(aim, Ratio) else f"{value:.3g}" for value in (median(values), *values)]
    verdict = "" if median(values) <= aim.aim else " (not reached)"
    return f"| {aim.name} | {wanted} | {shown[0]}{verdict} | {', '.join(shown[1:])} |"


def _ratio(value: float) -> str:
    return f"1/{1 / value:.1f}" if value < 0.9 else f"{value:.2f}"


def write_readme(path: Path, command: str, tables: Mapping[str, str]) -> None:
    """Write the tables between the markers of the README; scenarios that were not run now keep their last table."""
    text = path.read_text()
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    kept = dict(re.findall(r"<!-- (\w+) -->\n(.*?)(?=<!-- \w+ -->|\Z)", old, re.DOTALL))
    made = f"Made by `{command}`; load of the machine at its end {os.getloadavg()[0]:.1f}."
    kept.update({name: f"{made}\n\n{content}\n" for name, content in tables.items()})
    parts = "".join(f"<!-- {name} -->\n{content.strip()}\n\n" for name, content in kept.items())
    path.write_text(f"{before}{BEGIN}\n{machine()}\n\n{parts}{END}{after}")
