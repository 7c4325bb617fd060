"""`ferry airflow …`: Ferry's command line hands these words over by the entry point `ferry.commands`."""

from __future__ import annotations

from collections.abc import Sequence

from ferry_airflow import setup

USAGE = "usage: ferry airflow setup [--config FILE]   create pools, check connections; safe to run again"


def main(arguments: Sequence[str]) -> int:
    """Run `setup`; anything else shows the usage (exit code 2)."""
    if not arguments or arguments[0] != "setup":
        print(USAGE)
        return 0 if arguments and arguments[0] in ("--help", "-h") else 2
    return setup.main(list(arguments[1:]))
