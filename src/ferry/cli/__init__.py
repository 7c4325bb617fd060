"""The command line: `ferry`. Its modules import what is heavy inside their commands, so that help is quick."""

from ferry.cli.app import main

__all__ = ["main"]
