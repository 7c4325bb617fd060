"""The progress of a copy on standard error: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ferry.cli.progress_bar import bar
from ferry.copy.task import SlotTask
from ferry.ledger.progress import RunProgress
from ferry.model import Plan, Receipt
from ferry.run.following import Following
from ferry.run.pace import progress_in_short, progress_line

log = logging.getLogger(__name__)

BAR_SECONDS = 1.0
LINE_SECONDS = 5.0


@contextmanager
def shown_progress(
    plan: Plan, spec: SlotTask, *, quiet: bool, ahead: int = 0
) -> Iterator[Callable[[list[Receipt]], None]]:
    """Yield a function to call with every committed chunk; `ahead`: offsets to be copied after this plan.

    `spec` may be of any slot: it carries the target's connection.
    """
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with bar(sum(piece.offsets for piece in plan.slices), "") as drawn:

            def show(progress: RunProgress) -> None:
                drawn(progress.whole.passed, progress_in_short(plan, progress, ahead=ahead))

            with Following(plan, spec, every_s=BAR_SECONDS, show=show, say=log.info) as following:
                show(following.now)

                def hear(receipts: list[Receipt]) -> None:
                    following.hear(receipts)
                    show(following.now)

                yield hear
    else:

        def line(progress: RunProgress, *, has_ended: bool = False) -> None:
            log.info("run %s: %s", plan.run, progress_line(plan, progress, ahead=ahead, has_ended=has_ended))

        with Following(plan, spec, every_s=LINE_SECONDS, show=line, say=log.info) as following:
            yield following.hear
        line(following.now, has_ended=True)
