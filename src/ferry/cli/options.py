"""Options that every command takes, before its name and after it. `ferry --help` needs no more than this."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ferry.errors import BadInput

ConfigOption = Annotated[
    Path | None,
    # Whoever reads the file says it better than Typer when it may not be read.
    typer.Option(
        "--config",
        metavar="FILE",
        help="The MirrorMaker 2 file; also FERRY_CONFIG.",
        readable=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON on standard output.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress and no warnings on standard error.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="The libraries' log lines, too, on standard error.")]


class NothingNamed(BadInput):
    """The command line lacks what the command is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options that stand before the command's name."""

    config: Path | None
    clusters: str | None
    """The local clusters as they were written; none: all are."""
    as_json: bool
    quiet: bool
    verbose: bool
