"""The timeline of a drill: when each step began, how it ended, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.model.evidence import StepOutcome, TimelineStep

OnStep = Callable[[TimelineStep | str], None]
"""Called with the title of each step that begins, and with each step that has ended."""


@dataclass(slots=True)
class Entry:
    """The result of a step, set while it runs."""

    detail: str = ""


@dataclass(slots=True, kw_only=True)
class Timeline:
    """The steps so far. `stop` is called before each step."""

    on_step: OnStep
    stop: Callable[[], bool] = lambda: False
    began_ms: int = field(default_factory=wall_ms)
    steps: list[TimelineStep] = field(default_factory=list)

    @contextmanager
    def step(
        self, name: str, title: str, *, always: bool = False, approved: tuple[str, int] = ("", 0)
    ) -> Iterator[Entry]:
        """Do one step, and record it. An error ends the step and is raised again. Raises Refused after a stop signal.

        With `always` the step is done after a stop signal, too.
        """
        if not always and self.stop():
            raise Refused(f"stopped before the step {title!r} by a signal: start the drill again")
        began, entry, outcome = wall_ms(), Entry(), StepOutcome.FAILED
        self.on_step(title)
        try:
            yield entry
            outcome = StepOutcome.DONE
        except Refused as error:
            outcome, entry.detail = StepOutcome.REFUSED, str(error)
            raise
        except Exception as error:
            entry.detail = str(error)
            raise
        finally:
            who, at_ms = approved
            done = TimelineStep(
                name=name,
                title=title,
                began_ms=began,
                ended_ms=wall_ms(),
                outcome=outcome,
                detail=entry.detail,
                approved_by=who,
                approved_ms=at_ms,
            )
            self.steps.append(done)
            self.on_step(done)
