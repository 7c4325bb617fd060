"""When clusters did not answer, and what was paused, as far as polls and failed runs show it; pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ferry.model import Pause, Refusal, RefusalKind
from ferry.reader.charts import Mark, Missed, Spell
from ferry.reader.documents import Trouble
from ferry.reader.lag_point import APART_MS

MOST_SPELLS = 100
KEPT_MS = 24 * 3_600_000
"""How long a spell is kept after its end: for the longest limited range of the charts."""


def spells_of(
    before: Sequence[Spell],
    troubles: Iterable[Trouble],
    pauses: Mapping[str, Pause],
    now_ms: int,
    *,
    looked_ms: int,
    answered: Mapping[str, int],
) -> tuple[Spell, ...]:
    """Return the spells after a poll, the oldest first: those that it does not show any more have ended.

    An outage has ended at the poll before it, at `looked_ms`: that is the last one that showed it. A pause has ended
    at this poll. `answered` is when each cluster answered a poll last; 0: it never did. Those that ended longer than
    KEPT_MS ago are left out, and the oldest of very many.
    """
    there = [
        Spell(mark=Mark.OUTAGE, of=one.cluster, since_ms=one.since_ms, after_ms=answered.get(one.cluster) or None)
        for one in troubles
    ]
    there += [Spell(mark=Mark.PAUSE, of=topic, since_ms=one.since_ms) for topic, one in sorted(pauses.items())]
    lasting = {_of(one) for one in there}
    known = []
    for one in before:
        spell = one
        if spell.until_ms is None and _of(spell) not in lasting:
            spell = replace(spell, until_ms=max(spell.since_ms, looked_ms) if spell.mark is Mark.OUTAGE else now_ms)
        if spell.mark is Mark.OUTAGE and spell.until_ms is not None and spell.before_ms is None:
            first = answered.get(spell.of, 0)
            spell = replace(spell, before_ms=first) if first > spell.until_ms else spell
        known.append(spell)
    old = {_of(one) for one in known}
    known += [one for one in there if _of(one) not in old]
    return tuple(one for one in known if one.until_ms is None or one.until_ms > now_ms - KEPT_MS)[-MOST_SPELLS:]


def _of(spell: Spell) -> tuple[Mark, str, int]:
    return spell.mark, spell.of, spell.since_ms


_SECONDS = r"\d{1,9}(?:\.\d{1,9})?(?:e\+?\d{1,2})?"
_GAVE_UP = re.compile(
    rf"does not answer within (?P<open>{_SECONDS}) s\b"
    rf"|\(given up after (?P<asked>{_SECONDS}) s\b(?!: bring that service back)"
)
"""The words of errors that a cluster did not answer, with the time that it was tried (`ferry.kafka.connect`).

A service of the cluster's login that did not answer is not an outage of the cluster.
"""


def missed_of(sentence: str, at_ms: int, aliases: Collection[str]) -> Missed | None:
    """Return what a sentence shows, with which a task ended at `at_ms`: when it tried which cluster without an answer.

    None if it ended for another reason. "x on cluster a: ..." is another one, because the cluster answered that.
    """
    gave_up = _GAVE_UP.search(sentence)
    if gave_up is None or not aliases:
        return None
    names = "|".join(re.escape(alias) for alias in sorted(aliases, key=len, reverse=True))
    tried = [*re.finditer(rf"(?:^|[:;(] ?)cluster ({names})(?![\w-]|\.\w)", sentence[: gave_up.start()])]
    if not tried:
        return None
    seconds = float(gave_up["open"] or gave_up["asked"])
    return Missed(cluster=tried[-1][1], since_ms=max(0, at_ms - int(seconds * 1000)), until_ms=at_ms)


def silent_by(refusals: Iterable[Refusal], aliases: Collection[str]) -> tuple[str, ...]:
    """Return the clusters that did not answer tasks of a copy, by what these left undone."""
    texts = {one.message for one in refusals if one.kind is RefusalKind.SLOT_FAILED}
    found = (missed_of(text, 0, aliases) for text in texts)
    return tuple(sorted({one.cluster for one in found if one is not None}))


def outages_of(
    polled: Iterable[Spell],
    missed: Iterable[Missed],
    answered: Mapping[str, Iterable[int]],
    left: Iterable[tuple[str, int]] = (),
) -> tuple[Spell, ...]:
    """Return the outages that polls and failed runs show, each cluster's oldest first.

    `answered` are times at which a cluster answered. Two times without an answer are one outage if no answer is known
    between them. They are two if polls saw both, and if there was no poll for long between them.

    `left` are clusters that did not answer a copy, each with the time of its last receipt. If nothing else shows that
    outage, it is one without a known time: `until_ms` is `since_ms`, and it was before `before_ms`.
    """
    found: dict[str, list[Spell]] = {}
    answers = {alias: [*times] for alias, times in answered.items()}
    looks = [*polled]
    for one in looks:
        found.setdefault(one.of, []).append(one)
        answers.setdefault(one.of, []).extend(at for at in (one.after_ms, one.before_ms) if at is not None)
    for try_ in missed:
        spell = Spell(mark=Mark.OUTAGE, of=try_.cluster, since_ms=try_.since_ms, until_ms=try_.until_ms)
        found.setdefault(try_.cluster, []).append(spell)
    known = [
        spell for alias, spells in found.items() for spell in _joined(spells, sorted(answers.get(alias, ())), looks)
    ]
    return (*known, *_without_time(left, answers, known))


def _without_time(
    left: Iterable[tuple[str, int]], answers: Mapping[str, Iterable[int]], known: Sequence[Spell]
) -> Iterator[Spell]:
    for alias, at_ms in sorted(set(left)):
        before = min((one for one in answers.get(alias, ()) if one > at_ms), default=None)
        shown = (one for one in known if one.of == alias and (one.until_ms is None or one.until_ms >= at_ms))
        if not any(before is None or one.since_ms <= before for one in shown):
            yield Spell(mark=Mark.OUTAGE, of=alias, since_ms=at_ms, until_ms=at_ms, after_ms=at_ms, before_ms=before)


def _joined(spells: Iterable[Spell], answers: Sequence[int], polled: Collection[Spell]) -> Iterator[Spell]:
    now: Spell | None = None
    for one in sorted(spells, key=lambda one: one.since_ms):
        if now is None:
            now = one
        elif now.until_ms is not None and (
            bisect_left(answers, one.since_ms) > bisect_left(answers, now.until_ms)
            or (now in polled and one in polled and one.since_ms - now.until_ms > APART_MS)
        ):
            yield _bounded(now, answers)
            now = one
        else:
            lasts = now.until_ms is None or one.until_ms is None
            now = replace(now, until_ms=None if lasts else max(now.until_ms or 0, one.until_ms or 0))
    if now is not None:
        yield _bounded(now, answers)


def _bounded(spell: Spell, answers: Sequence[int]) -> Spell:
    """Return an outage with the last answer before it and the first one after it."""
    first = bisect_right(answers, spell.since_ms)
    after = None if spell.until_ms is None else bisect_left(answers, spell.until_ms)
    return replace(
        spell,
        after_ms=answers[first - 1] if first else None,
        before_ms=answers[after] if after is not None and after < len(answers) else None,
    )
