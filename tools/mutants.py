"""Put plausible faults into the code, one at a time, and see whether the named tests notice: `make mutants`.

The table is tests/mutants.toml. Each entry replaces one piece of text, which must be there exactly once, in a copy of
the sources, and runs its tests against that copy, as `make quick` does. A fault that no test notices is printed as
survived, and the exit code is 1 unless the table gives the reason (`survives`). `NAME ...` runs some of them, by their
beginnings.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "mutants.toml"
SOURCES = ("src", "plugins")
SECONDS = 300
QUICK = "not slow and not extra and not soak"
ALONE = ("-n", "0", "-p", "no:cacheprovider")


def main(names: list[str]) -> int:
    """Run the table, or the entries whose names begin so; the exit code."""
    table = tomllib.loads(TABLE.read_text())
    chosen = {name: one for name, one in table.items() if not names or name.startswith(tuple(names))}
    survived = []
    with tempfile.TemporaryDirectory(prefix="ferry-mutants-") as folder:
        copy = Path(folder)
        for source in SOURCES:
            shutil.copytree(ROOT / source, copy / source, ignore=shutil.ignore_patterns("__pycache__"))
        for name, one in chosen.items():
            began = time.monotonic()
            killed = _is_killed(copy, one)
            why = one.get("survives", "")
            outcome = "killed" if killed else f"SURVIVED{f' ({why})' if why else ''}"
            print(f"{name:<40} {outcome} in {time.monotonic() - began:.0f} s: {one['what']}", flush=True)
            if not killed and not why:
                survived.append(name)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} faults are noticed, or named with the reason")
    return 1 if survived else 0


def _is_killed(copy: Path, one: dict[str, str]) -> bool:
    path = copy / one["file"]
    text = path.read_text()
    if text.count(one["old"]) != 1:
        raise SystemExit(f"{one['file']} has {text.count(one['old'])} times, not once: {one['old']!r}")
    path.write_text(text.replace(one["old"], one["new"]))
    try:
        # The copies come before the checkout, which the environment has installed.
        found = os.pathsep.join([*(str(copy / source) for source in SOURCES), str(ROOT)])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", QUICK, "-q", "-x", *ALONE, *one["tests"].split()],
            cwd=ROOT,
            env={"HYPOTHESIS_PROFILE": "quick", **os.environ, "PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(text)
    if done.returncode not in (0, 1):
        raise SystemExit(f"the tests of {one['file']} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
