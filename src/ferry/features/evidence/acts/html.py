"""A report as one page of HTML: without requests and scripts; it prints on A4."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ferry.errors import BadInput
from ferry.features.evidence.rules.codec import SealedReport
from ferry.features.evidence.rules.figures import nothing_sampled
from ferry.model.evidence import EvidenceOutcome, Loss
from ferry.words import readable, size, thousands

if TYPE_CHECKING:  # the command line starts fast
    from jinja2 import Environment

SHOWN = 200
"""Rows of partitions, groups and findings that a page shows; the JSON next to it has all."""

_NEEDED = ("jinja2", "matplotlib")


def check_renderer() -> None:
    """Raise BadInput, with the remedy, if the libraries that make pages are not installed."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise BadInput(f"reports need {' and '.join(missing)}: install ferry-replicator[reports]")


def rendered(report: SealedReport, sha256: str) -> str:
    """Return the page of a report; `sha256` is the digest of its JSON."""
    # Matplotlib takes half a second to import, and `ferry --help` does not draw.
    from ferry.features.evidence.acts.charts import copying_chart, timeline_chart  # noqa: PLC0415 - as said

    one = report.evidence
    worst = sorted(one.losses, key=_worst_first)
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            report=report,
            one=one,
            sha256=sha256,
            losses=worst[:SHOWN],
            more_losses=max(0, len(worst) - SHOWN),
            groups=one.groups[:SHOWN],
            more_groups=max(0, len(one.groups) - SHOWN),
            mark={EvidenceOutcome.SUCCESS: "\N{CHECK MARK}", EvidenceOutcome.DEVIATIONS: "!"}.get(
                one.outcome, "\N{MULTIPLICATION SIGN}"
            ),
            copying=copying_chart(one.samples),
            not_drawn=nothing_sampled(one.kind),
            timeline=timeline_chart(one.steps),
        )
    )


def _worst_first(loss: Loss) -> tuple[bool, int, str, int]:
    return (loss.records is not None, -(loss.records or 0), *loss.source)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - only where a page is made

    environment = Environment(
        loader=PackageLoader("ferry.features.evidence.acts", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": _time, "clock": _clock, "seconds": _seconds, "count": _count, "size": _size}
    environment.filters["readable"] = readable
    return environment


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-5]


def _seconds(value: float | None) -> str:
    """Write a duration for people: `40 ms`, `9.4 s`, `3 min 20 s`, `2 h 5 min`."""
    if value is None:
        return "not known"
    if value < 1:
        return f"{value * 1000:.0f} ms" if value else "0 s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _count(value: float | None) -> str:
    """Separate thousands by a narrow space that does not break."""
    return "not known" if value is None else thousands(value)


def _size(value: float | None) -> str:
    return "not known" if value is None else size(value)
