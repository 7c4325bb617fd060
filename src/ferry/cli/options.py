"""Options that several commands take. `ferry --help` needs no more than this.

`ferry.cli.command` gives a command the options that all commands share.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ferry.cli.completion import offered_flows, offered_lanes, offered_topics
from ferry.cli.measures import lasting, sized
from ferry.cli.output import Form
from ferry.errors import BadInput
from ferry.units import LONG_MAX

DEFAULT_PATIENCE = 60.0

FlowArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FLOW",
        help="'source->target', in quotes. May be omitted if the file has one flow.",
        autocompletion=offered_flows,
    ),
]
RequiredFlow = Annotated[
    str, typer.Argument(metavar="FLOW", help="'source->target', in quotes.", autocompletion=offered_flows)
]
PatienceOption = Annotated[
    float, lasting("--patience", "How long to retry an unreachable cluster.", default=DEFAULT_PATIENCE, least=0.1)
]
ConfigOption = Annotated[
    Path | None,
    # If the file cannot be read, the code that reads it reports it better than Typer.
    typer.Option(
        "--config",
        metavar="FILE",
        help="The MirrorMaker 2 file. Default: FERRY_CONFIG.",
        readable=False,
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print no progress and no warnings on standard error.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Print the libraries' log lines on standard error, too.")
]

TopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", help="Only this source topic. May be repeated.", metavar="TOPIC", autocompletion=offered_topics
    ),
]
MaxBytesOption = Annotated[
    int | None,
    sized("--max-bytes", "Byte budget of the run, if smaller than the file's.", least=1),
]
MaxRecordsOption = Annotated[
    int | None,
    typer.Option("--max-records", min=1, metavar="N", help="Record budget of the run, if smaller than the file's."),
]
MaxSecondsOption = Annotated[
    int | None,
    lasting("--max-seconds", "Time budget of the run, if smaller than the file's.", least=1, most=LONG_MAX, whole=True),
]
LaneOption = Annotated[
    str | None,
    typer.Option(
        "--lane",
        metavar="LANE",
        help="A lane other than the flow's own, for example backfill-NAME.",
        autocompletion=offered_lanes,
    ),
]


class NothingNamed(BadInput):
    """The command line does not name what the command is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalOptions:
    """The options before the command's name."""

    config: Path | None
    variable: str | None
    """The variable of the environment that names the file; None: an option names it, or nothing does."""
    clusters: str | None
    """The local clusters as written on the command line; None: all are local."""
    form: Form | None
    """The form of the answer; None: the command line does not name it."""
    quiet: bool
    verbose: bool
