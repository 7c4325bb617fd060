"""Options that several commands take. `ferry --help` needs no more than this.

`ferry.cli.command` gives a command the options that all commands share.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.completion import offered_flows, offered_lanes, offered_topics
from ferry.errors import BadInput

DEFAULT_PATIENCE = 60.0
YEAR_SECONDS = 31_536_000
"""The longest wait: a number that the clock cannot count would end a command midway."""

FlowArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FLOW",
        help="'source->target', in quotes; may be left out when the file has one flow.",
        autocompletion=offered_flows,
    ),
]
RequiredFlow = Annotated[
    str, typer.Argument(metavar="FLOW", help="'source->target', in quotes.", autocompletion=offered_flows)
]
FlowOption = Annotated[
    str | None,
    typer.Option(
        "--flow",
        metavar="FLOW",
        help="'source->target'; may be left out when the file has one flow.",
        autocompletion=offered_flows,
    ),
]
PatienceOption = Annotated[
    float,
    typer.Option(
        "--patience",
        min=0.1,
        max=YEAR_SECONDS,
        metavar="SECONDS",
        help="How long an unreachable cluster is tried.",
    ),
]
ConfigOption = Annotated[
    Path | None,
    # If the file cannot be read, the code that reads it reports it better than Typer.
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

TopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", help="Only this source topic; may be repeated.", metavar="TOPIC", autocompletion=offered_topics
    ),
]
MaxBytesOption = Annotated[
    int | None, typer.Option("--max-bytes", min=1, metavar="N", help="A smaller byte budget than the file's.")
]
MaxRecordsOption = Annotated[
    int | None, typer.Option("--max-records", min=1, metavar="N", help="A smaller record budget than the file's.")
]
MaxSecondsOption = Annotated[
    int | None, typer.Option("--max-seconds", min=1, metavar="N", help="A smaller time budget than the file's.")
]
LaneOption = Annotated[
    str | None,
    typer.Option(
        "--lane",
        metavar="LANE",
        help="Another lane than the flow's own, as backfill-NAME.",
        autocompletion=offered_lanes,
    ),
]


class NothingNamed(BadInput):
    """The command line does not name what the command is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The options before the command's name."""

    config: Path | None
    clusters: str | None
    """The local clusters as written on the command line; None: all are local."""
    as_json: bool
    quiet: bool
    verbose: bool
