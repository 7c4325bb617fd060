"""The charts of a report as SVG inside its page: without scripts, with text as text, and without requests."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from ferry.model.evidence import Sample, StepOutcome, TimelineStep
from ferry.words import thousands

INK = "#1b2733"
FAINT = "#8a949e"
BLUE = "#0a5a9c"
RED = "#b3261e"
_WIDE = 7.4
"""Inches: the width of A4 between its margins."""

_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#d5dade",
    "grid.linewidth": 0.5,
}


def copying_chart(samples: Sequence[Sample]) -> str:
    """Draw lag above throughput over the same time; empty for fewer than two samples."""
    if len(samples) < 2:
        return ""
    times = [_time(sample.at_ms) for sample in samples]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDE, 3.6), layout="constrained")
        lag, rate = figure.subplots(2, 1, sharex=True)
        lag.plot(times, [sample.lag_records for sample in samples], color=INK, linewidth=1.4)
        lag.set_ylabel("lag, records")
        lag.yaxis.set_major_formatter(EngFormatter(sep=" "))
        rate.step(times, [sample.bytes_per_second for sample in samples], color=BLUE, linewidth=1.4, where="pre")
        rate.set_ylabel("throughput")
        rate.yaxis.set_major_formatter(EngFormatter(unit="B/s", sep=" "))
        highest = (max(one.lag_records for one in samples), max(one.bytes_per_second for one in samples))
        for axes, top in zip((lag, rate), highest, strict=True):
            _plain(axes)
            axes.set_ylim(0, top * 1.08 or 1)
            axes.yaxis.set_major_locator(MaxNLocator(4))
        locator = AutoDateLocator(tz=UTC, minticks=3, maxticks=8)
        rate.xaxis.set_major_locator(locator)
        rate.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))
        rate.set_xlabel("time, UTC")
        first, last = samples[0], samples[-1]
        peak = max(sample.bytes_per_second for sample in samples)
        description = (
            f"Lag went from {thousands(first.lag_records)} to {thousands(last.lag_records)} records in "
            f"{(last.at_ms - first.at_ms) / 1000:.1f} seconds; the highest throughput was {peak / 1e6:.1f} MB a second."
        )
        return _svg(figure, "copying", description)


def timeline_chart(steps: Sequence[TimelineStep]) -> str:
    """Draw one bar for each step, from top to bottom; empty for fewer than two steps."""
    if len(steps) < 2:
        return ""
    begin = min(step.began_ms for step in steps)
    whole = max(max(step.ended_ms for step in steps) - begin, 1) / 1000
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDE, 0.55 + 0.24 * len(steps)), layout="constrained")
        axes = figure.subplots()
        for row, step in enumerate(steps):
            at, wide = (step.began_ms - begin) / 1000, max(step.seconds, whole / 400)
            done = step.outcome is StepOutcome.DONE
            axes.barh(row, wide, left=at, height=0.55, color=BLUE if done else RED, hatch=None if done else "////")
            left = at + wide < whole * 0.85
            place = at + wide + whole * 0.008 if left else at - whole * 0.008
            text = f"{step.seconds:.1f} s" + ("" if done else f" {step.outcome}")
            axes.text(place, row, text, va="center", ha="left" if left else "right", fontsize=8)
        axes.set_yticks(range(len(steps)), [step.title for step in steps])
        axes.invert_yaxis()
        axes.set_xlabel("seconds from the beginning")
        axes.set_xlim(0, whole * 1.02)
        _plain(axes)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        description = "; ".join(f"{step.title}: {step.seconds:.1f} seconds, {step.outcome}" for step in steps)
        return _svg(figure, "timeline", f"The steps in order: {description}.")


def _plain(axes: Axes) -> None:
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _svg(figure: Figure, name: str, description: str) -> str:
    """Return the figure as an element of a page; its ids begin with `name`, so that they are unique there."""
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].rstrip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{name}-", text)
    label = html.escape(description, quote=True)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
