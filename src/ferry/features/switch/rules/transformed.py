"""The checks of a switch for copies that a transform made. Pure.

Clients may go to such copies. No records of them go back, so an operator must confirm that they may stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.receipts import last_receipts
from ferry.ledger.unit_codec import last_units
from ferry.model import Flow
from ferry.model.check import Check
from ferry.words import count_of, several

NAME = "transforms"
_MARK = b'"transform_digest"'


class Made(NamedTuple):
    """A source topic, its copy, and the name of the transform that made records of it ("": not known)."""

    source: str
    target: str
    by: str

    @property
    def transform(self) -> str:
        """The name of the transform, for use in a sentence."""
        return f"ferry.transform.{self.by}" if self.by else "a transform"


def transformed_topics(view: LedgerView, lane: str) -> list[Made]:
    """Return the copies of which a transform made any record, even if the file names no transform today."""
    found = dict(_found(view, lane))
    return sorted(Made(source, target, by) for (source, target), by in found.items())


def _found(view: LedgerView, lane: str) -> Iterator[tuple[tuple[str, str], str]]:
    for of in view.rolled.chains:
        if of.lane == lane and of.transform:
            yield (of.source.topic, of.target.topic), ""
    for unit in last_units(view, lane).values():
        yield (unit.source.topic, unit.target.topic), ""
    for key, record in view.of_kind("receipt"):
        if key[1] == lane and record.value is not None and _MARK in record.value:
            receipt = read_as(record, parse_receipt)
            yield (receipt.source.topic, receipt.target.topic), receipt.transform
    for last in last_receipts(view, lane).values():
        if last.transform:
            yield (last.source.topic, last.target.topic), last.transform


def changed_topics(view: LedgerView, lane: str, wanted: Mapping[str, tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the source topics whose copies a run would make in another way now, with the transform's name.

    `wanted` has, by source topic, the name of its transform in the file and the digest of the transform.
    """
    digests: dict[str, set[str]] = defaultdict(set)
    for last in last_receipts(view, lane).values():
        digests[last.source.topic].add(last.transform_digest)
    for unit in last_units(view, lane).values():
        digests[unit.source.topic].add(unit.transform_digest)
    return sorted((topic, name) for topic, (name, digest) in wanted.items() if digests.get(topic, {digest}) != {digest})


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed:
    """What is known of a flow's transforms."""

    made: Sequence[Made] = ()
    changed: Sequence[tuple[str, str]] = ()
    """Source topics whose copies a run would make in another way now, with the transform's name (`changed_topics`)."""
    lost: Sequence[str] = ()
    """Why a transform of the file cannot be carried out on this machine: sentences with their remedy."""


def transforms_check(flow: Flow, found: Transformed) -> Check:
    """Check that runs can carry out the flow's transforms, which a switchover needs.

    It also names the copies that they made.
    """
    if found.lost:
        more = f"; and {len(found.lost) - 1} more" if len(found.lost) > 1 else ""
        return Check(name=NAME, ok=False, message=f"a run would refuse topics: {found.lost[0]}{more}")
    said = [check.message for check in leaving(flow, found.made)]
    if found.changed:
        named = several([f"{topic} by ferry.transform.{name}" for topic, name in found.changed])
        said.append(
            f"{count_of(len(found.changed), 'topic')} of {flow.source} would be made otherwise from now on than up to "
            f"now ({named}): to have all of a topic alike, copy it again under another name"
        )
    return Check(name=NAME, ok=True, message="; ".join(said) or "no copy is made by a transform")


def leaving(flow: Flow, made: Sequence[Made]) -> list[Check]:
    """Say what to know before clients go to copies that transforms made; empty if there are none."""
    if not made:
        return []
    named = several([f"{one.target} by {one.transform}" for one in made])
    message = (
        f"{count_of(len(made), 'topic')} of {flow.target} were made by transforms ({named}): what those left out or "
        "changed is not there, and no failback leads back from these topics"
    )
    return [Check(name=NAME, ok=True, message=message)]


def returning(flow: Flow, made: Sequence[Made], keeps: Callable[[str], bool], leave: Collection[str]) -> list[Check]:
    """Make a check for each copy that does not go back.

    It fails if records would stay there without the operator's consent. `flow` is the one that made the copies. `keeps`
    returns whether a copy has the name that producers write on that cluster, so that the flow back would copy it.
    `leave` are the copies that the operator has named to be left.
    """
    found = []
    known = {one.target for one in made if keeps(one.target)}
    for one in made:
        what = (
            f"{one.target} on {flow.target} was made of {one.source} on {flow.source} by {one.transform}: what that "
            f"left out or changed is nowhere on {flow.target}, so"
        )
        stays = f"what producers have written to it stays on {flow.target} alone"
        if one.target not in known:
            message = f"{what} no group is led back from it; leave those that read it (--leave-group)"
        elif one.target in leave:
            message = f"{what} the topic does not go back; {stays}, as was said (--leave-topic {one.target})"
        else:
            message = (
                f"{what} the topic does not go back, and {stays}: save what is needed of that, then say that the topic "
                f"may be left with --leave-topic {one.target}, and its groups with --leave-group"
            )
        found.append(Check(name=NAME, ok=one.target not in known or one.target in leave, message=message))
    for name in sorted(set(leave) - known):
        message = (
            f"--leave-topic {name}: that is not a topic of {flow.target} which a failback would leave; correct the "
            "name, or omit the option"
        )
        found.append(Check(name=NAME, ok=False, message=message))
    return found


def trouble(flow: Flow, source: object, target: object, group_cluster: str) -> str:
    """Say why no group is moved from such a copy back to its source topic."""
    return (
        f"it has offsets of {target} on {group_cluster}, which {flow} made by a transform of {source}: records that "
        "were left out in between do not exist there, so where it continues is not known; leave it with "
        "--leave-group, and set its offsets by hand"
    )
