"""The program `ferry`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from ferry.cli.stopping import COPYING, hold_signals


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line, by default this process's own, and exit.

    A signal that arrives while the program is imported goes to the command, if that is a run.
    """
    if arguments is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if COPYING.intersection(sys.argv[1:]):
            hold_signals()
    from ferry.cli.app import run  # noqa: PLC0415 - all that comes before it is one module

    run(program, sys.argv[1:] if arguments is None else arguments)


@cache
def program() -> Any:
    """Return all commands, built once: a process may run several command lines."""
    from ferry.cli.app import built  # noqa: PLC0415 - as in main
    from ferry.commands import COMMANDS, OLD_SPELLINGS  # noqa: PLC0415 - as above

    return built(COMMANDS, OLD_SPELLINGS)


if __name__ == "__main__":
    main()
