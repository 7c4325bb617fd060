"""`ferry verify`: compares a copy with its source."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.options import LaneOption, TopicsOption
from ferry.cli.progress_bar import counted
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.records.cli.in_spark import need_spark
from ferry.features.verify.acts.wanted import Wanted, bound
from ferry.features.verify.cli.views import print_verified
from ferry.ledger.verified_codec import verified_json
from ferry.words import count_of, size

if TYPE_CHECKING:
    from ferry.features.verify.acts.compare import Compared, Progress
    from ferry.features.verify.acts.survey import Survey
    from ferry.features.verify.acts.verifier import Verifier

DIFFERENT = 1

_SEED_BITS = 32


@command(table=True)
def verify_command(
    context: Context,
    topic: TopicsOption = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="N", help="Only this partition of the topic.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="OFFSET|TIME",
            help="Begin at this source offset of the partition, or at this time for all partitions.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="OFFSET|TIME", help="End before this source offset, or before this time."),
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only what this run copied.")] = None,
    sample: Annotated[
        int | None,
        typer.Option("--one-in", min=1, metavar="N", help="Compare only one in N segments of each partition."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            metavar="SEED",
            help="With --one-in: choose by this seed, as an earlier comparison printed it.",
        ),
    ] = None,
    compacted: Annotated[
        bool,
        typer.Option("--compacted", help="Compare all topics like compacted ones: by the latest record of each key."),
    ] = False,
    without_ledger: Annotated[
        bool,
        typer.Option(
            "--without-ledger", help="Compare by content, for topics that MirrorMaker 2 copied (no Ferry ledger)."
        ),
    ] = False,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Compare transformed topics, too: Spark on this machine transforms them again."),
    ] = False,
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Read both clusters with librdkafka instead of Ferry's own reader: slower, and a second opinion.",
        ),
    ] = False,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show keys, values and headers of records that differ.")
    ] = False,
    lane: LaneOption = None,
) -> int:
    """Compare what was copied on both clusters, using the ledger: keys, values, headers, timestamps, order and count.

    Exit code 1 when they differ, or when not all that was asked for could be compared. No cluster is written to; where
    ferry.metrics.folder is set, the outcome goes there.
    """
    from ferry.features.observe.acts.after_run import publish_verification  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.verify.acts.verifier import Verifier  # noqa: PLC0415 - as above

    chosen = context.flow(lane)
    if spark:
        need_spark("--spark transforms topics again in Spark")
    if independent and spark:
        raise BadInput(
            "--spark transforms what Ferry's own reader reads, and --independent leaves that reader out: omit one of "
            "the two"
        )
    if seed is not None and sample is None:
        raise BadInput(f"--seed {seed} chooses among segments: add --one-in N, or omit it")
    (first, since_ms), (last, until_ms) = bound("--from", start), bound("--to", end)
    wanted = Wanted(
        topics=frozenset(topic) if topic else None,
        partition=partition,
        start=first,
        end=last,
        since_ms=since_ms,
        until_ms=until_ms,
        compacted=compacted,
        without_ledger=without_ledger,
        run=run,
        sample=sample,
        seed=secrets.randbits(_SEED_BITS) if seed is None else seed,
    )
    with Verifier(
        chosen, wanted, values=show_values, independent=independent, patience_s=context.patience_s
    ) as verifier:
        found = verifier.survey()
        with shown_progress(found.records, quiet=context.quiet) as progress:
            compared = verifier.compare(found, progress, _in_spark(chosen, verifier) if spark else None)
        result = verifier.sum_up(found, compared)
    publish_verification(chosen, result, narrow=wanted.is_narrow)
    context.answer(lambda: verified_json(result), lambda: print_verified(result))
    return 0 if result.is_equal else DIFFERENT


def _in_spark(flow: FlowConfig, verifier: Verifier) -> Callable[[Survey], Compared]:
    """Return the function that compares what a transform made in a local Spark."""
    from ferry.features.records.spark.local_session import local_session  # noqa: PLC0415 - only this needs Spark
    from ferry.features.verify.spark.verifying import compare_transformed  # noqa: PLC0415 - as above

    def compared(found: Survey) -> Compared:
        with local_session("ferry verify", cores=os.cpu_count() or 1) as session:
            return compare_transformed(session, flow, verifier.spec, found, asked=verifier.asked)

    return compared


@contextmanager
def shown_progress(records: int, *, quiet: bool) -> Iterator[Progress]:
    """Show progress by a function that gets how many records were compared, of about `records`, and bytes read."""
    total = count_of(records, "record")
    with counted(records, f"comparing about {total}", quiet=quiet) as show:
        yield lambda compared, read: show(compared, f"compared {compared} of about {total}, {size(read)} read")
