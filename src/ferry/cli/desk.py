"""What every command is asked with: the configuration, the flow, and how to answer."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.offered import offered_flows, offered_lanes, offered_topics
from ferry.cli.output import print_warning
from ferry.errors import BadInput

if TYPE_CHECKING:  # the command line starts light
    from ferry.config.flow.flow import FlowConfig
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


class NothingNamed(BadInput):
    """The command line lacks what the command is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The options that stand before the command's name."""

    config: Path | None
    clusters: tuple[str, ...] = ()
    """The local clusters; none: all are."""
    as_json: bool
    quiet: bool
    verbose: bool


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
            clusters=before.clusters,
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
        # Imported here, like all that is heavy: the command line starts light.
        from ferry.config.login.connection import from_environment
        from ferry.config.settings import load

        desk = cls.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
        settings = desk.settings()
        chosen = desk.flow_of(settings, flow)
        return desk, load(settings.path, from_environment) if settings.local else settings, chosen

    def settings(self) -> Settings:
        """The configuration file; BadInput names what is wrong in it."""
        # Imported here, like all that is heavy: the command line starts light.
        from ferry.config.login.connection import from_environment
        from ferry.config.settings import load

        settings = load(self.config_file(), from_environment).near(self.clusters)
        if not self.quiet:
            for problem in settings.problems:
                print_warning(str(problem))
        return settings

    def limited(self, examined: Examined) -> Examined:
        """Only the flows into local clusters; BadInput for a cluster that the file does not have."""
        # Imported here: the command line starts light.
        from ferry.config.nearby import check_local, into
        from ferry.config.text.problem import Problem, Severity

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
        if len(settings.flows) == 1:
            return settings.flows[0]
        # Imported here, like all that is heavy: the command line starts light.
        from ferry.config.settings import some

        known = some([f"'{config.flow}'" for config in settings.flows]) or "none"
        raise BadInput(f"{settings.path} has {len(settings.flows)} enabled flows ({known}): name one")


def refuse_option_as_file(option: str, path: Path | None) -> None:
    """BadInput where an option that names a file to write took the next option for its name."""
    if path is not None and str(path).startswith("-"):
        raise BadInput(f"{option} took {str(path)!r} for the file to write: put the file's name behind {option}")


def in_lane_of(flow: FlowConfig, lane: str | None) -> FlowConfig:
    """The flow in the lane that --lane names; BadInput for one that is neither live nor a backfill nor a drill."""
    # Imported here: the command line starts light.
    from ferry.config.flow.lane import in_lane
    from ferry.model import lane_kind

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
    # Imported here: the command line starts light.
    from ferry.run.ledger.pausing import refuse_foreign_topic

    for topic in topics or ():
        refuse_foreign_topic(flow, topic)
    return frozenset(topics) if topics else None


def _set_up_log(*, quiet: bool, verbose: bool) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logging.basicConfig(format="%(message)s" if not verbose else "%(levelname)s %(name)s: %(message)s")
    logging.getLogger("ferry").setLevel(level)
    # kafka-python logs every refused connection as an error; Ferry's own sentence says it once.
    logging.getLogger("kafka").setLevel(logging.INFO if verbose else logging.CRITICAL)
