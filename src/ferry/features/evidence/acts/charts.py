"""The charts of a report: SVG with text as text, without scripts and requests, for its page; PNG for its PDF."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from ferry.features.evidence.rules.document import Chart
from ferry.model.evidence import Sample, StepOutcome, TimelineStep

INK = "#1b2733"
FAINT = "#8a949e"
BLUE = "#0a5a9c"
RED = "#b3261e"
_WIDE = 7.4
"""Inches: the width of A4 between its margins."""
_DOTS = 200
"""Dots of a PNG per inch."""

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


Image = TypeVar("Image")
Form = Callable[[Figure, Chart], Image]
"""Makes an image of a figure."""


def drawn(chart: Chart, form: Form[Image]) -> Image:
    """Draw a chart of a document in a form, `as_svg` or `as_png`. The same chart always gives the same image."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": chart.name}):
        figure = _timeline(chart.steps) if chart.steps else _copying(chart.samples)
        return form(figure, chart)


def as_svg(figure: Figure, chart: Chart) -> str:
    """Return the figure as an element of a page; its ids begin with the chart's name, so that they are unique there."""
    out = io.StringIO()
    FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].rstrip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\1{chart.name}-", text)
    label = html.escape(chart.description, quote=True)
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def as_png(figure: Figure, _: Chart) -> bytes:
    """Return the figure as a PNG, on white."""
    out = io.BytesIO()
    figure.set_dpi(_DOTS)
    FigureCanvasAgg(figure).print_png(out, metadata={"Software": None})
    return out.getvalue()


def _copying(samples: Sequence[Sample]) -> Figure:
    """Draw lag above throughput over the same time."""
    times = [_time(sample.at_ms) for sample in samples]
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
    return figure


def _timeline(steps: Sequence[TimelineStep]) -> Figure:
    """Draw one bar for each step, from top to bottom."""
    begin = min(step.began_ms for step in steps)
    whole = max(max(step.ended_ms for step in steps) - begin, 1) / 1000
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
    return figure


def _plain(axes: Axes) -> None:
    axes.grid(visible=True)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
