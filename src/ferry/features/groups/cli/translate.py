"""`ferry translate`: which target offset a source offset translates to, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.completion import offered_topics
from ferry.cli.options import LaneOption
from ferry.cli.output import echo, print_table
from ferry.errors import BadInput
from ferry.features.groups.cli.forms import group_translation_json, translation_json
from ferry.model import TopicPartition
from ferry.words import count_of

if TYPE_CHECKING:
    from ferry.features.groups.rules.translation import GroupTranslation, Translation

NOT_KNOWN = 1


@command(table=True)
def translate_command(
    context: Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="The topic's name at the source; with --reverse, at the target.",
            autocompletion=offered_topics,
        ),
    ] = None,
    partition: Annotated[int | None, typer.Argument(metavar="PARTITION", min=0, help="The partition of TOPIC.")] = None,
    offset: Annotated[
        int | None, typer.Argument(metavar="OFFSET", min=0, help="The next offset that a consumer would read.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="GROUP", help="Translate all offsets of this group, instead of TOPIC PARTITION OFFSET."
        ),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Translate from the target to the source.")] = False,
    lane: LaneOption = None,
) -> int:
    """Translate a consumer position from one cluster to the other, using the ledger.

    The source is asked whether it still has what was copied. If it does not answer, there is a warning. Exit code 1
    when an offset is before the first copied one, or after the last.
    """
    from ferry.features.groups.acts.translate import translate, translate_group  # noqa: PLC0415 - brings the Kafka clients

    if group is not None:
        if topic is not None:
            raise BadInput(f"translate was given both --group {group} and TOPIC {topic}: omit one of the two")
        chosen = context.flow(lane)
        whole = translate_group(chosen, group, backward=reverse, patience_s=context.patience_s)
        context.answer(
            lambda: group_translation_json(chosen.flow, whole, reverse=reverse), lambda: _print_group(whole, reverse)
        )
        vague = any(_is_vague(found) for _, found in whole.found)
        return NOT_KNOWN if whole.uncopied or whole.troubled or vague else 0
    context.refuse_csv("the translation of one offset")
    if topic is None or partition is None or offset is None:
        raise BadInput("translate has nothing to translate: give TOPIC PARTITION OFFSET, or --group GROUP")
    place = TopicPartition(topic=topic, partition=partition)
    found = translate(context.flow(lane), place, offset, backward=reverse, patience_s=context.patience_s)
    context.answer(
        lambda: translation_json(found, offset, reverse=reverse), lambda: echo(_sentence(found, offset, reverse))
    )
    return NOT_KNOWN if _is_vague(found) else 0


def _is_vague(found: Translation) -> bool:
    return found.outcome.word in ("ahead", "before", "log-start")


def _print_group(whole: GroupTranslation, reverse: bool) -> None:
    names = ("target", "source") if reverse else ("source", "target")
    here, there = ([f"{name} topic", "partition", "offset"] for name in names)
    rows: list[list[object]] = []
    for offset, found in whole.found:
        asked, answer = (found.target, found.source) if reverse else (found.source, found.target)
        rows.append([asked.topic, asked.partition, offset, found.outcome.word])
        rows[-1] += [answer.topic, answer.partition, found.outcome.offset]
    for places in (whole.uncopied, whole.foreign):
        rows += [[place.topic, place.partition, offset, "not copied", None, None, None] for place, offset in places]
    rows += [[place.topic, place.partition, at, "not translated", None, None, None] for place, at, _ in whole.troubled]
    print_table([*here, "outcome", *there], rows, right=["partition", "offset"])
    for why in dict.fromkeys(why for _, _, why in whole.troubled):
        echo(why)
    for topic, place, at in whole.dealt:
        again = "all records there" if at.again is None else f"at most {count_of(at.again, 'record')}"
        echo(f"from offset {at.offset} of {place}, no unread record of {topic} is missed; {again} read again")


def _sentence(found: Translation, offset: int, reverse: bool) -> str:
    here, there = (found.target, found.source) if reverse else (found.source, found.target)
    to = f"offset {found.outcome.offset} of {there}"
    if found.pruned is not None:
        return (
            f"offset {offset} of {here} is deleted on both sides, and so are the receipts of all before {found.pruned} "
            f"(ferry.ledger.prune): the remaining records begin at {to}"
        )
    return (
        f"offset {offset} of {here} "
        + {
            "exact": f"is {to}",
            "gap": "has no counterpart (a marker, an aborted, skipped or filtered record): a consumer continues at "
            f"{to}",
            "ahead": f"is not copied yet: a consumer that begins at {to}, the copied end, loses nothing and may read "
            "records again",
            "approximate": f"was copied by the previous replicator: a consumer that begins at {to}, near its record, "
            "loses nothing and may read records again",
            "before": f"is before the first copied offset: the copy begins at {to}",
            "log-start": f"is deleted at the {'source' if reverse else 'target'}, by its retention or by hand: the "
            f"remaining records begin at {to}",
        }[found.outcome.word]
    )
