"""The command line: `ferry`. Its modules import what is heavy inside their commands, so that help is quick."""

import signal
import sys

from ferry.cli.commands.stopping import hold_signals


def main() -> None:
    """Run the program and exit; a signal that comes while it is imported is one to the command, if that is a run."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if {"run", "backfill"}.intersection(sys.argv[1:]):
        hold_signals()
    # Imported here: all that comes before it is one module.
    from ferry.cli.app import main as program

    program()


__all__ = ["main"]
