"""`ferry translate`: which target offset stands for a source offset, and the way back."""

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
    VerboseOption,
)
from ferry.cli.output import print_json

if TYPE_CHECKING:  # the command line starts light
    from ferry.run.translate import Translation

NOT_KNOWN = 1


def translate_command(
    ctx: typer.Context,
    flow: FlowArgument,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Its name at the source; with --reverse, at the target.")
    ],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0)],
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="The next offset that a reader would read.")],
    reverse: Annotated[bool, typer.Option("--reverse", help="From the target to the source.")] = False,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Say where a reader of one side goes on at the other, by the ledger; only the target cluster is asked.

    Exit code 1 when the offset is before the first copied one or behind the last.
    """
    # Imported here: the command line starts light.
    from ferry.decide.offset_map import Ahead, Before
    from ferry.model import TopicPartition
    from ferry.run.translate import translate

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    place = TopicPartition(topic=topic, partition=partition)
    found = translate(desk.flow(flow), place, offset, backward=reverse, patience_s=patience)
    print_json(_json(found, offset, reverse)) if desk.as_json else print(_sentence(found, offset, reverse))
    return NOT_KNOWN if isinstance(found.outcome, Ahead | Before) else 0


def _json(found: Translation, offset: int, reverse: bool) -> dict[str, object]:
    source, target = (found.outcome.offset, offset) if reverse else (offset, found.outcome.offset)
    return {
        "outcome": found.outcome.word,
        "source_topic": found.source.topic,
        "source_partition": found.source.partition,
        "source_offset": source,
        "target_topic": found.target.topic,
        "target_partition": found.target.partition,
        "target_offset": target,
    }


def _sentence(found: Translation, offset: int, reverse: bool) -> str:
    here, there = (found.target, found.source) if reverse else (found.source, found.target)
    to = f"offset {found.outcome.offset} of {there}"
    return (
        f"offset {offset} of {here} "
        + {
            "exact": f"is {to}",
            "gap": f"has no counterpart (a marker, an aborted or skipped record): a reader goes on at {to}",
            "ahead": f"is not copied yet: who begins at {to}, the copied end, loses nothing and may read again",
            "before": f"is before the first copied offset: the copy begins at {to}",
        }[found.outcome.word]
    )
