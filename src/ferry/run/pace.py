"""How far a copy has come, and about how long the rest takes at the pace so far."""

from __future__ import annotations

from ferry.ledger.progress import Progress, RunProgress
from ferry.ledger.report import pieces_sentence
from ferry.model import Plan
from ferry.words import count_of, several, size

NOTHING_SENT = "nothing sent yet"
"""Why is not known: its tasks may be starting, reading, or waiting."""


def span(seconds: float) -> str:
    """Return an approximate time as text: `40 s`, `12 min`, `1.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def outlook(whole: int, left: int, seconds: float) -> str:
    """Return as text how many of `whole` offsets are left after some seconds, and about how long they take."""
    done = whole - left
    rest = f", about {span(seconds * left / done)} to go" if done > 0 and left else ""
    return f"{share_copied(whole, left)}{rest}"


def share_copied(whole: int, left: int) -> str:
    """Return as text how many of `whole` offsets are left."""
    return f"{100 * (whole - left) // max(1, whole)} % copied, {count_of(left, 'offset')} left"


def progress_line(plan: Plan, progress: RunProgress, *, ahead: int = 0, has_ended: bool = False) -> str:
    """Return how far a run has come, for a log: what is committed, what is sent, the rate, and the slowest slots.

    `ahead`: offsets that runs after this one are to copy, for the time left. `has_ended`: its tasks have ended.
    """
    whole = progress.whole
    if whole.has_sent_nothing and not has_ended:
        return f"{_done(plan, whole)}; {NOTHING_SENT}"
    done = f"{_done(plan, whole)}, {count_of(whole.records, 'record')}, {size(whole.bytes)} committed"
    return "; ".join(filter(None, [done, _sent(whole), _rate(whole, ahead), _slowest(progress)]))


class Milestones:
    """Which lines of progress a log shows: those that say more than the last one, and fewer the longer a run takes.

    The pause between two lines is a tenth of the run's time so far, and a minute at most.
    """

    def __init__(self) -> None:
        self._last_s = 0.0
        self._line = ""

    def has(self, line: str, seconds: float) -> bool:
        """Return whether the line is to be shown; `seconds` is the run's time so far."""
        if line == self._line or seconds - self._last_s < min(60.0, seconds / 10):
            return False
        self._last_s, self._line = seconds, line
        return True


def progress_in_short(plan: Plan, progress: RunProgress, *, ahead: int = 0) -> str:
    """Return how far a run has come, for a bar at a terminal: several lines, so that 80 columns do."""
    whole = progress.whole
    if whole.has_sent_nothing:
        return f"{_done(plan, whole)}\n{NOTHING_SENT}"
    done = ", ".join(filter(None, [_done(plan, whole), size(whole.bytes), _rate(whole, ahead)]))
    committed = f"{count_of(whole.records, 'record')} committed"
    return "\n".join(filter(None, [done, committed, _sent(whole), _slowest(progress)]))


def _sent(whole: Progress) -> str:
    if whole.is_unknown:
        return "what is sent and not committed is not known"
    if not whole.sent and not whole.unseen:
        return ""
    of = "" if whole.sent_bytes is None else f", {size(whole.sent_bytes)}"
    about = "at least" if whole.unseen else "about"
    return f"{about} {count_of(whole.sent, 'record')}{of} sent and not committed"


def _done(plan: Plan, whole: Progress) -> str:
    return f"{whole.done} of {pieces_sentence(plan)}"


def _rate(whole: Progress, ahead: int) -> str:
    rate = "" if whole.bytes_per_second is None else f"{size(whole.bytes_per_second)}/s"
    left = whole.left + ahead
    seconds = whole.seconds_for(left)
    return ", ".join(filter(None, [rate, f"about {span(seconds)} left" if left and seconds is not None else ""]))


def _slowest(progress: RunProgress) -> str:
    """Return which of several slots have come least far."""
    at_work = [(part.share, slot) for slot, part in progress.slots if part.done < part.slices]
    if len(progress.slots) < 2:
        return ""
    return several([f"slot {slot} at {share} %" for share, slot in sorted(at_work)])
