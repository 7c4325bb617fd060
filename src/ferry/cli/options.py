"""Options that several commands take.

`ferry.cli.command` gives a command the options that all commands share.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ferry.cli.completion import offered_flows, offered_lanes, offered_topics
from ferry.cli.measures import lasting, sized
from ferry.units import LONG_MAX

DEFAULT_PATIENCE = 60.0


def _flow(text: str) -> Any:
    """Return the argument FLOW with its help."""
    return typer.Argument(metavar="FLOW", help=f"'source->target', in quotes{text}", autocompletion=offered_flows)


FlowArgument = Annotated[str | None, _flow(". May be omitted if the file has one flow.")]
OnlyFlowArgument = Annotated[str | None, _flow(": only this flow. Default: all flows.")]
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
