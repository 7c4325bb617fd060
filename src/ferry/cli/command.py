"""The options that all commands share, and the Context in which a command gets them.

A command's own file declares only its own options: `@command()` adds the shared ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import typer

from ferry.cli.global_options import (
    FormOption,
    GlobalOptions,
    JsonOption,
    NothingNamed,
    QuietOption,
    VerboseOption,
    form_of,
)
from ferry.cli.options import DEFAULT_PATIENCE, ConfigOption, FlowArgument, OnlyFlowArgument, PatienceOption
from ferry.cli.output import Form, print_answer, print_warning
from ferry.errors import BadInput

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig
    from ferry.config.reading.examine import Examined
    from ferry.config.settings import Settings

Own = ParamSpec("Own")
"""A command's own options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The shared options of a command, merged from those before and after its name, and how it answers."""

    config: Path | None
    clusters: tuple[str, ...]
    quiet: bool
    verbose: bool
    form: Form = Form.TABLE
    variable: str | None = None
    """The variable of the environment that names the file; None: an option does."""
    named: str | None = None
    """The flow as written on the command line; None: the only one of the file."""
    patience_s: float = DEFAULT_PATIENCE
    given: tuple[str, ...] = ()
    """The parameters that the command line names."""
    rest: tuple[str, ...] = ()
    """The words that no parameter takes."""

    @property
    def as_json(self) -> bool:
        """Whether the answer is JSON."""
        return self.form is Form.JSON

    @property
    def for_programs(self) -> bool:
        """Whether a program reads the answer: nothing else may be on standard output."""
        return self.form is not Form.TABLE

    def answer(
        self, document: Callable[[], object], show: Callable[[], object], table: Callable[[], object] | None = None
    ) -> None:
        """Print the command's answer: as JSON the document, else what `show` prints.

        As csv it is the first table that `table` prints, by default `show`.
        """
        print_answer(document, show, form=self.form, table=table)

    def refuse_csv(self, what: str) -> None:
        """Raise BadInput if csv is asked for, of an answer without a table; `what` it is."""
        if self.form is Form.CSV:
            raise BadInput(f"{what} is not a table, so it cannot be csv: omit -o csv, or write -o json")

    def config_file(self) -> Path:
        """Return the path of the configuration file; BadInput when none is named."""
        if self.config is None:
            raise NothingNamed("no configuration file is named: give --config FILE, or set FERRY_CONFIG")
        return self.config

    def settings(self) -> Settings:
        """Return the configuration, read from its file; BadInput names what is wrong in it."""
        settings = _loaded(self.config_file(), self.variable).near(self.clusters)
        if not self.quiet:
            for problem in settings.problems:
                if not problem.planned:
                    print_warning(str(problem))
        return settings

    def flow(self, lane: str | None = None) -> FlowConfig:
        """Return the named flow, or the only one of the file, in the lane that --lane names.

        Raises BadInput for a lane that is neither the flow's own nor a backfill, append or drill lane.
        """
        return _in_lane(self.flow_of(self.settings()), lane)

    def flow_of(self, settings: Settings, named: str | None = None) -> FlowConfig:
        """Return the named flow, or the only one, of settings that were read already."""
        text = named or self.named
        if text is None:
            return settings.only_flow()
        if text.endswith("-") and "->" not in text:
            raise BadInput(
                f"flow {text!r} is cut off, because the shell took its > for a redirection, and made an empty file of "
                f"what followed: delete that file, and put '{text}>target' in quotes"
            )
        return settings.flow(text)

    def both_ways(self) -> tuple[Settings, FlowConfig]:
        """Return the file with the flows into all clusters, and the flow: a switch needs both directions.

        That does not depend on the cluster at which the command runs.
        """
        settings = self.settings()
        chosen = self.flow_of(settings)
        return _loaded(settings.path) if settings.local else settings, chosen

    def limited(self, examined: Examined) -> Examined:
        """Keep only the flows into local clusters; BadInput for a cluster that the file does not have."""
        from ferry.config.local_clusters import check_local, into  # noqa: PLC0415 - help and completion read no settings
        from ferry.config.text.problem import Problem, Severity  # noqa: PLC0415 - as above

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


def command(
    *,
    flow: bool = True,
    all_flows: bool = False,
    connects: bool = True,
    config: bool = True,
    table: bool = False,
) -> Callable[[Callable[Concatenate[Context, Own], int]], Callable[..., int]]:
    """Add the shared options to a command, whose first parameter is the Context.

    - `flow`: its first argument is the flow, which may be omitted if the file has one.
    - `all_flows`: without that argument it takes all flows.
    - `connects`: the command takes --patience.
    - `config`: it takes --config.
    - `table`: its answer is or has a table, so that it may be csv.
    """
    flow_argument = OnlyFlowArgument if all_flows else FlowArgument if flow else None
    first, last = _shared(flow_argument, connects=connects, config=config)

    def decorated(function: Callable[Concatenate[Context, Own], int]) -> Callable[..., int]:
        run: Callable[..., int] = function
        own = list(signature(function, eval_str=True).parameters.values())[1:]

        @wraps(function)
        def called(ctx: typer.Context, **values: Any) -> int:
            context = _context(ctx, values)
            if not table:
                context.refuse_csv(f"the answer of {ctx.command_path}")
            return run(context, **{one.name: values[one.name] for one in own})

        # Typer reads both.
        called.__annotations__ = {}
        vars(called)["__signature__"] = Signature([*first, *_by_name(own), *last])
        return called

    return decorated


def _shared(flow: object, *, connects: bool, config: bool) -> tuple[list[Parameter], list[Parameter]]:
    """Return the parameters before a command's own ones and after them, in the order of its help.

    `flow` is the annotation of the argument FLOW; None: the command has none.
    """
    first = [_parameter("ctx", typer.Context), *([_parameter("flow", flow, None)] if flow is not None else [])]
    last = [
        *([_parameter("patience", PatienceOption, DEFAULT_PATIENCE)] if connects else []),
        *([_parameter("config", ConfigOption, None)] if config else []),
        _parameter("form", FormOption, None),
        _parameter("as_json", JsonOption, False),
        _parameter("quiet", QuietOption, False),
        _parameter("verbose", VerboseOption, False),
    ]
    return first, last


def _parameter(name: str, annotation: object, default: object = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _by_name(own: list[Parameter]) -> list[Parameter]:
    """Return parameters that may follow one with a default."""
    return [one.replace(kind=Parameter.KEYWORD_ONLY) for one in own]


def _context(ctx: typer.Context, values: dict[str, Any]) -> Context:
    """Merge the options before the command's name with those after it, and set up the log."""
    before: GlobalOptions = ctx.obj
    context = Context(
        config=values.get("config") or before.config,
        clusters=_aliases(before.clusters),
        variable=None if values.get("config") else before.variable,
        form=form_of(values["form"], as_json=values["as_json"]) or before.form or Form.TABLE,
        quiet=values["quiet"] or before.quiet,
        verbose=values["verbose"] or before.verbose,
        named=values.get("flow"),
        patience_s=values.get("patience", DEFAULT_PATIENCE),
        given=tuple(name for name in ctx.params if str(ctx.get_parameter_source(name)).endswith("COMMANDLINE")),
        rest=tuple(ctx.args),
    )
    _set_up_log(quiet=context.quiet, verbose=context.verbose)
    return context


def _aliases(text: str | None) -> tuple[str, ...]:
    from ferry.config.local_clusters import local_clusters  # noqa: PLC0415 - help and completion read no settings

    return local_clusters(text) if text else ()


def _loaded(path: Path, variable: str | None = None) -> Settings:
    from ferry.config.login.environment import from_environment  # noqa: PLC0415 - help and completion read no settings
    from ferry.config.settings import load  # noqa: PLC0415 - as above

    return load(path, from_environment, variable=variable)


def _in_lane(flow: FlowConfig, lane: str | None) -> FlowConfig:
    from ferry.config.flow.lane import in_lane  # noqa: PLC0415 - help and completion read no settings
    from ferry.model import lane_kind  # noqa: PLC0415 - as above

    if lane is None or lane == flow.lane:
        return flow
    if lane_kind(lane) is None:
        raise BadInput(
            f"flow {flow.flow} has no lane {lane!r}: name {flow.lane}, or a backfill-, drill- or append- lane that "
            "ferry lanes list shows"
        )
    return in_lane(flow, lane)


def only_topics(flow: FlowConfig, topics: list[str] | None) -> frozenset[str] | None:
    """Return the topics that --topic names; BadInput for one that the flow does not copy."""
    from ferry.config.flow.flow import refuse_foreign_topic  # noqa: PLC0415 - help and completion read no settings

    for topic in topics or ():
        refuse_foreign_topic(flow, topic)
    return frozenset(topics) if topics else None


def _set_up_log(*, quiet: bool, verbose: bool) -> None:
    level = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logging.basicConfig(format="%(message)s" if not verbose else "%(levelname)s %(name)s: %(message)s")
    logging.getLogger("ferry").setLevel(level)
    # kafka-python logs every refused connection as an error; Ferry's own message reports it once.
    logging.getLogger("kafka").setLevel(logging.INFO if verbose else logging.CRITICAL)
