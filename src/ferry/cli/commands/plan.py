"""`ferry plan`: what a run would do now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.desk import (
    DEFAULT_PATIENCE,
    ConfigOption,
    Desk,
    FlowArgument,
    JsonOption,
    PatienceOption,
    QuietOption,
    TopicsOption,
    VerboseOption,
    only_topics,
)
from ferry.cli.output import print_json, print_table, size
from ferry.errors import BadInput
from ferry.words import count_of

if TYPE_CHECKING:  # the command line starts light
    from ferry.config.flow.flow import FlowConfig
    from ferry.config.settings import Settings
    from ferry.config.why import Why
    from ferry.model import Plan

MaxBytesOption = Annotated[
    int | None, typer.Option("--max-bytes", min=1, metavar="N", help="A smaller byte budget than the file's.")
]
MaxRecordsOption = Annotated[
    int | None, typer.Option("--max-records", min=1, metavar="N", help="A smaller record budget than the file's.")
]
MaxSecondsOption = Annotated[
    int | None, typer.Option("--max-seconds", min=1, metavar="N", help="A smaller time budget than the file's.")
]
WhyOption = Annotated[
    str | None,
    typer.Option("--why", metavar="NAME", help="Which line takes or leaves the topic or consumer group NAME."),
]

SampleOption = Annotated[
    int | None,
    typer.Option(
        "--sample",
        min=1,
        max=1000,
        metavar="N",
        help="Show N records of each topic with a transform, before and after.",
    ),
]
ShowValuesOption = Annotated[
    bool, typer.Option("--show-values", help="With --sample: show keys, values and headers in the clear.")
]


def plan_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    topic: TopicsOption = None,
    max_bytes: MaxBytesOption = None,
    max_records: MaxRecordsOption = None,
    why: WhyOption = None,
    sample: SampleOption = None,
    show_values: ShowValuesOption = False,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Show what a run would copy, change and refuse now. Nothing is written.

    Exit code 1 when something would be refused. With --why no cluster is asked. With --sample the file's transforms are
    checked in a local Spark and shown on records of the source, instead of a plan; exit code 2 when one breaks.
    """
    # Imported here: the command line starts light.
    from ferry.cli.bar import working
    from ferry.plan.options import RunOptions
    from ferry.run.micro_run import MicroRuns

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    if why is not None and not why:
        raise BadInput("--why '': names nothing; give the name of a topic or a consumer group")
    settings = desk.settings()
    chosen = desk.flow_of(settings, flow)
    if why is not None:
        show_why(chosen, settings, why, as_json=desk.as_json)
        return 0
    if show_values and sample is None:
        raise BadInput("--show-values goes with --sample: add --sample N, or leave it out")
    if sample is not None:
        return _show_sample(chosen, sample, topic, values=show_values, as_json=desk.as_json)
    options = RunOptions(only=only_topics(chosen, topic), max_bytes=max_bytes, max_records=max_records)
    with working("Planning", quiet=desk.quiet), MicroRuns(chosen, patience_s=patience) as runs:
        plan = runs.preview(options)
    show_plan(plan, as_json=desk.as_json)
    return 1 if plan.refusals else 0


def _show_sample(chosen: FlowConfig, count: int, topic: list[str] | None, *, values: bool, as_json: bool) -> int:
    if not chosen.transforms:
        raise BadInput(f"flow {chosen.flow} has no transforms, so all records arrive as they are: leave --sample out")
    # Imported here: Spark is heavy, and only this needs it.
    from ferry.cli.commands.in_spark import need_spark
    from ferry.cli.commands.sampled import show_sample

    need_spark("--sample carries the transforms out in Spark")
    from ferry.features.records.spark.sample import samples

    found = samples(chosen, count, only_topics(chosen, topic), clear=values)
    return show_sample(chosen, found, values=values, as_json=as_json)


def show_why(flow: FlowConfig, settings: Settings, name: str, *, as_json: bool) -> None:
    """Print what the flow makes of a topic and of a consumer group of that name."""
    # Imported here: the command line starts light.
    from ferry.cli.shapes import why_json
    from ferry.config.why import why_group, why_topic

    origins = settings.origins[flow.flow]
    verdicts = {"topic": why_topic(flow, origins, name), "group": why_group(flow, origins, name)}
    if as_json:
        print_json({"flow": str(flow.flow), "name": name, **{kind: why_json(why) for kind, why in verdicts.items()}})
        return
    for kind, why in verdicts.items():
        took = "takes" if why.taken else "leaves out"
        print(f"{flow.flow} {took} {kind} {name}: it {why.reason}{_where(settings, why)}")


def _where(settings: Settings, why: Why) -> str:
    if why.setting is None:
        return ""
    item = "" if why.item is None else f", by its item {why.item}"
    line = "default" if why.setting.line is None else f"{settings.path}:{why.setting.line}"
    return f" ({line}: {why.setting.key or why.setting.name} = {why.setting.value}{item})"


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print a plan that was not written."""
    # Imported here: the command line starts light.
    from ferry.cli.shapes import plan_json
    from ferry.plan.rules.change_sentences import differences, proposals

    if as_json:
        print_json(plan_json(plan))
        return
    if plan.slices:
        print_table(
            ["topic", "partition", "start", "end", "offsets", "bytes (about)", "target", "task"],
            (
                [
                    piece.source.topic,
                    piece.source.partition,
                    piece.start,
                    piece.end,
                    piece.offsets,
                    size(piece.bytes_estimate),
                    piece.target,
                    piece.slot,
                ]
                for piece in plan.slices
            ),
            right=["partition", "start", "end", "offsets", "bytes (about)", "task"],
        )
    if plan.units:
        print_table(
            ["topic", "target", "of", "offsets", "task"],
            ([unit.source_topic, unit.target, unit.partitions, unit.offsets, unit.slot] for unit in plan.units),
            right=["of", "offsets", "task"],
        )
    for line in (*proposals(plan.changes), *differences(plan.drift)):
        print(line)
    for acl in plan.acls:
        print(f"would {acl.kind} ACL: {acl.binding}")
    for topic in plan.paused:
        print(f"paused: {topic}")
    for note in plan.notes:
        print(f"note: {note}")
    for refusal in plan.refusals:
        print(f"refused: {refusal.message} [{refusal.kind}]")
    for left in plan.not_copied:
        print(f"not copied: {left.message} [{left.what}]")
    total = sum(piece.bytes_estimate for piece in plan.slices)
    units = f"{count_of(len(plan.units), 'unit')}, " if plan.units else ""
    offsets = sum(piece.offsets for piece in plan.slices)
    print(
        f"{plan.flow}: {count_of(len(plan.slices), 'slice')}, {count_of(offsets, 'offset')}, about {size(total)}, "
        f"{units}{count_of(len(plan.used_slots), 'task')}, {count_of(len(plan.refusals), 'refusal')}"
    )
