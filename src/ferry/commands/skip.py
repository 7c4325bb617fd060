"""`ferry skip`: skip offsets that cannot be copied, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_topics
from ferry.cli.identity import new_run, person
from ferry.cli.output import echo
from ferry.errors import BadInput


@command()
def skip_command(
    context: Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The source topic.", autocompletion=offered_topics)],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0, help="The partition of the source topic.")],
    to: Annotated[int, typer.Option("--to", metavar="OFFSET", min=0, help="The source offset to continue at.")],
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="The reason, for other operators. The ledger keeps it.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be skipped. Writes nothing.")] = False,
    interrupt: Annotated[
        bool,
        typer.Option("--interrupt", help="Skip even if a run of the lane is active or was killed, and end that run."),
    ] = False,
) -> int:
    """Skip records that cannot be copied, such as a corrupt batch, and continue at OFFSET. Records before OFFSET are
    never copied.

    It is a run of its own that copies nothing, so it is as safe as one; the ledger keeps who skipped what, and why.
    """
    from ferry.commands.forms import skip_json  # noqa: PLC0415 - brings the Kafka clients
    from ferry.config.flow.flow import refuse_foreign_topic  # noqa: PLC0415 - as above
    from ferry.features.identical.rules.written import refuse_written  # noqa: PLC0415 - as above
    from ferry.features.identical.settings import IdenticalSettings  # noqa: PLC0415 - as above
    from ferry.features.observe.acts.after_run import publish_skip  # noqa: PLC0415 - as above
    from ferry.model import TopicPartition  # noqa: PLC0415 - as above
    from ferry.plan.rules.skipping import SkipRequest, skip_sentence  # noqa: PLC0415 - as above
    from ferry.run.micro_run import MicroRuns, local_origin  # noqa: PLC0415 - as above

    chosen = context.flow()
    chosen.of(IdenticalSettings).refuse(chosen, "ferry skip", topic)
    if not reason.strip():
        raise BadInput("--reason is empty: give the reason, for other operators")
    refuse_foreign_topic(chosen, topic)
    source = TopicPartition(topic=topic, partition=partition)
    wish = SkipRequest(source=source, to=to, who=person(), reason=reason.strip())
    run = None if dry_run else new_run("skip")
    with MicroRuns(chosen, patience_s=context.patience_s) as runs:
        refuse_written(runs.wait_for(runs.view_if_any), chosen, "ferry skip", topic=topic)
        if run is None:
            gap = runs.preview_skip(wish)
        else:
            (gap,) = runs.skip(wish, run, local_origin(), interrupt=interrupt).gaps
    if run is not None:
        publish_skip(chosen, gap)
    context.answer(
        lambda: skip_json(chosen.flow, run, gap),
        lambda: echo(f"{'would skip: ' if run is None else ''}{skip_sentence(gap)}"),
    )
    return 0
