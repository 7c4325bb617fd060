"""`ferry plan`: what a run would do now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.options import MaxBytesOption, MaxRecordsOption, TopicsOption
from ferry.cli.output import Form
from ferry.cli.progress_bar import working
from ferry.errors import BadInput
from ferry.features.records.cli.in_spark import need_spark

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig

WhyOption = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="NAME",
        help="Show which line of the file includes or excludes the topic or consumer group NAME.",
    ),
]

SampleOption = Annotated[
    int | None,
    typer.Option(
        "--sample",
        min=1,
        max=1000,
        metavar="N",
        help="Show N records of each topic with a transform, before and after it.",
    ),
]
ShowValuesOption = Annotated[bool, typer.Option("--show-values", help="With --sample: show keys, values and headers.")]


@command(table=True)
def plan_command(
    context: Context,
    topic: TopicsOption = None,
    max_bytes: MaxBytesOption = None,
    max_records: MaxRecordsOption = None,
    why: WhyOption = None,
    sample: SampleOption = None,
    show_values: ShowValuesOption = False,
) -> int:
    """Show what a run would copy, change and refuse now. Writes nothing.

    Exit code 1 when something would be refused. With --explain no cluster is asked. With --sample there is no plan: a
    local Spark checks the file's transforms, and shows them on records of the source. Exit code 2 when one breaks.
    """
    from ferry.commands.forms import plan_json  # noqa: PLC0415 - the help needs none of it
    from ferry.commands.views import show_plan  # noqa: PLC0415 - as above
    from ferry.commands.why import show_why  # noqa: PLC0415 - as above
    from ferry.plan.options import RunOptions  # noqa: PLC0415 - as above
    from ferry.plan.preview import refuses  # noqa: PLC0415 - as above
    from ferry.run.micro_run import MicroRuns  # noqa: PLC0415 - as above

    if why is not None and not why:
        raise BadInput("--explain is empty: give the name of a topic or a consumer group")
    settings = context.settings()
    chosen = context.flow_of(settings)
    if why is not None:
        context.refuse_csv("what --explain shows")
        show_why(chosen, settings, why, form=context.form)
        return 0
    if show_values and sample is None:
        raise BadInput("--show-values needs --sample: add --sample N, or omit it")
    if sample is not None:
        return _show_sample(chosen, sample, topic, values=show_values, form=context.form)
    options = RunOptions(only=only_topics(chosen, topic), max_bytes=max_bytes, max_records=max_records)
    with working("Planning", quiet=context.quiet), MicroRuns(chosen, patience_s=context.patience_s) as runs:
        plan = runs.preview(options)
    context.answer(lambda: plan_json(plan), lambda: show_plan(plan))
    return 1 if refuses(plan) else 0


def _show_sample(chosen: FlowConfig, count: int, topic: list[str] | None, *, values: bool, form: Form) -> int:
    if not chosen.records.transforms:
        raise BadInput(f"flow {chosen.flow} has no transforms, so all records are copied unchanged: omit --sample")
    need_spark("--sample runs the transforms in Spark")
    from ferry.commands.sampled import show_sample  # noqa: PLC0415 - only this needs Spark
    from ferry.features.records.spark.sample import samples  # noqa: PLC0415 - as above

    found = samples(chosen, count, only_topics(chosen, topic), clear=values)
    return show_sample(chosen, found, values=values, form=form)
