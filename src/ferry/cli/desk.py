"""What every command is asked with: the configuration, the flow, and how to answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.offered import offered_flows, offered_lanes, offered_topics
from ferry.cli.options import NothingNamed, Wishes
from ferry.cli.output import print_warning
from ferry.config.flow.flow import FlowConfig, refuse_foreign_topic
from ferry.config.flow.lane import in_lane
from ferry.config.login.connection import from_environment
from ferry.config.nearby import check_local, into, local_clusters
from ferry.config.text.problem import Problem, Severity
from ferry.errors import BadInput
from ferry.model import lane_kind

if TYPE_CHECKING:
    from ferry.config.reading.examine import Examined
    from ferry.config.settings import Settings

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
YEAR_SECONDS = 31_536_000
"""No wait is longer: what a clock cannot count would end a command in its midst."""
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

DEFAULT_PATIENCE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The options before and behind the command's name as one."""

    config: Path | None
    clusters: tuple[str, ...]
    as_json: bool
    quiet: bool
    verbose: bool

    @classmethod
    def of(cls, ctx: typer.Context, *, config: Path | None, as_json: bool, quiet: bool, verbose: bool) -> Desk:
        """Merge both places, and set the log up accordingly."""
        before: Wishes = ctx.obj
        desk = cls(
            config=config or before.config,
            clusters=local_clusters(before.clusters),
            as_json=as_json or before.as_json,
            quiet=quiet or before.quiet,
            verbose=verbose or before.verbose,
        )
        _set_up_log(quiet=desk.quiet, verbose=desk.verbose)
        return desk

    def config_file(self) -> Path:
        """The configuration file that is meant; BadInput when none is named."""
        if self.config is None:
            raise NothingNamed("no configuration file is named: give --config FILE, or set FERRY_CONFIG")
        return self.config

    @classmethod
    def with_flow(
        cls, ctx: typer.Context, flow: str | None, *, config: Path | None, as_json: bool, quiet: bool, verbose: bool
    ) -> tuple[Desk, FlowConfig]:
        """The same, and the flow that is meant."""
        desk = cls.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
        return desk, desk.flow(flow)

    @classmethod
    def with_both_ways(
        cls, ctx: typer.Context, flow: str | None, *, config: Path | None, as_json: bool, quiet: bool, verbose: bool
    ) -> tuple[Desk, Settings, FlowConfig]:
        """The same, and the file with the flows into all clusters: a switch goes both ways, wherever it is called."""
        desk = cls.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
        settings = desk.settings()
        chosen = desk.flow_of(settings, flow)
        return desk, _loaded(settings.path) if settings.local else settings, chosen

    def settings(self) -> Settings:
        """The configuration file; BadInput names what is wrong in it."""
        settings = _loaded(self.config_file()).near(self.clusters)
        if not self.quiet:
            for problem in settings.problems:
                print_warning(str(problem))
        return settings

    def limited(self, examined: Examined) -> Examined:
        """Only the flows into local clusters; BadInput for a cluster that the file does not have."""
        if not self.clusters or not examined.clusters:
            return examined
        check_local(self.clusters, examined.clusters, examined.entries.file)
        flows, disabled = into(self.clusters, examined.flows), into(self.clusters, examined.disabled)
        problems = examined.problems
        if examined.flows and not flows:
            local = ", ".join(self.clusters)
            message = f"no enabled flow goes into {local} (--clusters, FERRY_CLUSTERS); correct one of the two"
            nothing = Problem(
                file=examined.entries.file, line=None, key="enabled", severity=Severity.WARNING, message=message
            )
            problems = (*problems, nothing)
        return replace(examined, flows=flows, disabled=disabled, problems=problems)

    def flow(self, text: str | None) -> FlowConfig:
        """The flow that is meant: the one named, or the only one of the file."""
        return self.flow_of(self.settings(), text)

    def flow_of(self, settings: Settings, text: str | None) -> FlowConfig:
        """The same of settings that are read already."""
        if text is not None:
            if text.endswith("-") and "->" not in text:
                raise BadInput(
                    f"flow {text!r} is cut off, the shell took its > for a redirection: put '{text}>target' in quotes"
                )
            return settings.flow(text)
        return settings.only_flow()


def _loaded(path: Path) -> Settings:
    from ferry.config.settings import load  # noqa: PLC0415 - help and completion read no settings

    return load(path, from_environment)


def refuse_option_as_file(option: str, path: Path | None) -> None:
    """BadInput where an option that names a file to write took the next option for its name."""
    if path is not None and str(path).startswith("-"):
        raise BadInput(f"{option} took {str(path)!r} for the file to write: put the file's name behind {option}")


def in_lane_of(flow: FlowConfig, lane: str | None) -> FlowConfig:
    """The flow in the lane that --lane names; BadInput for one that is neither live nor a backfill nor a drill."""
    if lane is None or lane == flow.lane:
        return flow
    if lane_kind(lane) is None:
        raise BadInput(
            f"flow {flow.flow} has no lane {lane!r}: name {flow.lane}, or a backfill-, drill- or append- lane that "
            "ferry lanes list shows"
        )
    return in_lane(flow, lane)


def only_topics(flow: FlowConfig, topics: list[str] | None) -> frozenset[str] | None:
    """The topics that --topic names; BadInput for one that the flow does not copy."""
    for topic in topics or ():
        refuse_foreign_topic(flow, topic)
    return frozenset(topics) if topics else None


def _set_up_log(*, quiet: bool, verbose: bool) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logging.basicConfig(format="%(message)s" if not verbose else "%(levelname)s %(name)s: %(message)s")
    logging.getLogger("ferry").setLevel(level)
    # kafka-python logs every refused connection as an error; Ferry's own sentence says it once.
    logging.getLogger("kafka").setLevel(logging.INFO if verbose else logging.CRITICAL)
