"""Ferry, MirrorMaker 2 and the bare pump, compared on the same machine and the same data.

    .venv/bin/python bench/run.py [--scenario NAME …] [--pairs 3] [--scale 1.0]

Absolute times of a machine drift; so the contenders take turns, and ratios are taken within each turn (a pair).
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from clusters import field
from report import table, write_readme
from scenarios import Pair, prepare, say, scenarios

HERE = Path(__file__).resolve().parent
NAMES = [scenario.name for scenario in scenarios(1.0)]


def main() -> None:
    """Run what the command line asks for, print the tables and keep them in the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", action="append", choices=NAMES, help="one of the scenarios; repeat it for more")
    parser.add_argument("--pairs", type=int, default=3, help="how often every contender has its turn")
    parser.add_argument("--scale", type=float, default=1.0, help="records, as a multiple of the usual")
    parser.add_argument("--folder", type=Path, help="where data goes (3 GB); a temporary folder when not given")
    parser.add_argument("--no-readme", action="store_true", help="print only")
    asked = parser.parse_args()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    chosen = [scenario for scenario in scenarios(asked.scale) if not asked.scenario or scenario.name in asked.scenario]
    scale = "" if asked.scale == 1.0 else f" --scale {asked.scale:g}"
    with tempfile.TemporaryDirectory(prefix="ferry-bench-", dir=asked.folder) as folder, field(Path(folder)) as place:
        ready: set[str] = set()
        for scenario in chosen:
            prepare(place, scenario, ready)
            pairs: list[Pair] = []
            for number in range(1, asked.pairs + 1):
                say(f"{scenario.name}, pair {number} of {asked.pairs}")
                pairs.append(scenario.run(place, scenario.shape, f"{scenario.name}-{number}"))
            measured = (scenario.table or table)(scenario, pairs)
            sys.stdout.write(measured + "\n")
            sys.stdout.flush()
            if not asked.no_readme:
                command = f'make bench ARGS="--scenario {scenario.name} --pairs {asked.pairs}{scale}"'
                write_readme(HERE / "README.md", command, {scenario.name: measured})


if __name__ == "__main__":
    main()
