"""Write alerts/ferry-dashboard.json: a Grafana dashboard over the metrics that runs write for Prometheus.

Usage: python tools/dashboard.py [--check]. Metrics are named by their declarations, so each one exists.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.samples import Metric

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "alerts" / "ferry-dashboard.json"
BY_FLOW = "source, target, lane"
BY_TOPIC = f"{BY_FLOW}, topic"
FLOW, TOPIC = "{{source}}->{{target}}", "{{source}}->{{target}} {{topic}}"
SELECTED = 'source=~"$source", target=~"$target", lane=~"$lane"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS, HEIGHT = 24, 8
RED_AFTER = ((None, "green"), (1, "red"))

Step = tuple[float | None, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: queries with their legends, and how numbers are shown; `words` are (number, word, colour)."""

    title: str
    text: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    steps: tuple[Step, ...] = ((None, "green"),)
    words: tuple[tuple[int, str, str], ...] = ()


def of(metric: Metric, *more: str, name: str = "") -> str:
    """Return the series of a metric that the variables select; `name` is another metric's, that of the last run."""
    chosen = [SELECTED, *(['topic=~"$topic"'] if "topic" in metric.labels else []), *more]
    return f"{name or metric.written}{{{', '.join(chosen)}}}"


def newest(what: str, time: Metric, by: str = BY_FLOW) -> str:
    """Return the series of the one machine, of several that report a flow, of which a time is the latest."""
    latest = f"{of(time)} == on ({by}) group_left () {each('max', of(time), by)}"
    return f"{what} and on (instance, job, {by}) ({latest})"


def last(metric: Metric, *more: str) -> str:
    """Return a gauge of the last run, or of the file as that run read it."""
    return newest(of(metric, *more), m.LAST_RUN_TIME)


def lag(metric: Metric) -> str:
    """Return a gauge of the lag, as it was measured last."""
    return newest(of(metric), m.LAG_TIME)


def added(metric: Metric, *more: str) -> str:
    """Return what the last run added to a counter."""
    return newest(of(metric, *more, name=metric.last_run), m.LAST_RUN_TIME)


def rate(metric: Metric) -> str:
    """Return a counter per second, over the time that the variable selects: runs add to it in steps."""
    return f"sum by ({BY_TOPIC}) (rate({of(metric)}[$window]))"


def each(how: str, what: str, by: str = BY_FLOW) -> str:
    """Return one value for each flow, or each topic."""
    return f"{how} by ({by}) ({what})"


def state(word: str) -> str:
    """Return 1 where the last run ended in this state."""
    return each("max", last(m.LAST_RUN_STATE, f'state="{word}"'))


def since(metric: Metric) -> str:
    """Return the seconds since the moment that a metric has."""
    return f"time() - {each('max', of(metric))}"


DURATION = each("max", last(m.LAST_RUN_SECONDS))
HELD_BACK = each("sum", added(m.THROTTLE_MS), f"{BY_FLOW}, by")
COMPARED = newest(of(m.VERIFIED_EQUAL), m.VERIFIED_TIME, f"{BY_FLOW}, by")
EXPOSURE = f"{each('max', lag(m.LAG_SECONDS))} + on ({BY_FLOW}) ({since(m.LAG_TIME)})"


def spread(of_what: m.Spread, by: str, legend: str) -> tuple[tuple[str, str], ...]:
    """Return the queries of least, mean and most."""
    return tuple(
        (each(how, last(metric), by), f"{legend} {word}")
        for word, how, metric in (
            ("least", "min", of_what.min),
            ("mean", "avg", of_what.avg),
            ("most", "max", of_what.max),
        )
    )


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Now",
        (
            Panel(
                title="Last run",
                text="How the last run of each flow ended.",
                queries=((f"{state('partial')} + on ({BY_FLOW}) 2 * {state('failed')}", FLOW),),
                kind="stat",
                words=((0, "success", "green"), (1, "partial", "orange"), (2, "failed", "red")),
            ),
            Panel(
                title="Exposure",
                text="How old the oldest record was that was not copied, and the time since: what may be lost now.",
                queries=((EXPOSURE, FLOW),),
                unit="s",
                kind="stat",
            ),
            Panel(
                title="Since the last success",
                text="It is overdue when no run has succeeded for ferry.alert.late.intervals of the schedule.",
                queries=((since(m.LAST_SUCCESS_TIME), FLOW),),
                unit="s",
                kind="stat",
            ),
        ),
    ),
    (
        "Lag",
        (
            Panel(
                title="Exposure and its limit",
                text="The limit is ferry.rpo.seconds.",
                queries=((EXPOSURE, FLOW), (each("max", last(m.LAG_LIMIT)), f"{FLOW} limit")),
                unit="s",
            ),
            Panel(
                title="Lag in records",
                text="Offsets that were not copied when the last run ended.",
                queries=((each("sum", lag(m.LAG_RECORDS), BY_TOPIC), TOPIC),),
            ),
            Panel(
                title="Age of the oldest record that is not copied",
                text="When the last run ended.",
                queries=((each("max", lag(m.LAG_SECONDS), BY_TOPIC), TOPIC),),
                unit="s",
            ),
        ),
    ),
    (
        "Throughput",
        (
            Panel(title="Records", text="Copied, per second.", queries=((rate(m.RECORD_COUNT), TOPIC),), unit="cps"),
            Panel(
                title="Bytes",
                text="Copied, as stored, per second.",
                queries=((rate(m.BYTE_COUNT), TOPIC),),
                unit="Bps",
            ),
            Panel(
                title="Speed of the last run",
                text="Records per second while it ran: read, and copied.",
                queries=(
                    (each("max", last(m.SOURCE_RECORD_POLL_RATE)), f"{FLOW} read"),
                    (each("max", last(m.SOURCE_RECORD_WRITE_RATE)), f"{FLOW} copied"),
                ),
                unit="cps",
            ),
        ),
    ),
    (
        "Latency",
        (
            Panel(
                title="Replication latency",
                text="From a record's timestamp to the receipt with which it was committed, in the last run.",
                queries=spread(m.REPLICATION_LATENCY_MS, BY_TOPIC, TOPIC),
                unit="ms",
            ),
            Panel(
                title="Record age",
                text="From a record's timestamp to its way to the target, in the last run.",
                queries=spread(m.RECORD_AGE_MS, BY_TOPIC, TOPIC),
                unit="ms",
            ),
            Panel(
                title="Checkpoint latency",
                text="From asking the source for a group's offsets to the target's answer, in the last run.",
                queries=spread(m.CHECKPOINT_LATENCY_MS, BY_FLOW, FLOW),
                unit="ms",
            ),
        ),
    ),
    (
        "Trouble",
        (
            Panel(
                title="Guards in the last run",
                text="What they refused, skipped or restarted.",
                queries=(
                    (
                        f"{each('sum', added(m.GUARD_COUNT), f'{BY_FLOW}, guard, outcome')} > 0",
                        f"{FLOW} {{{{guard}}}} {{{{outcome}}}}",
                    ),
                ),
                steps=RED_AFTER,
            ),
            Panel(
                title="Refused, left, skipped",
                text="In the last run: refusals, slices that are neither copied nor refused, gaps.",
                queries=(
                    (each("sum", added(m.REFUSAL_COUNT), f"{BY_FLOW}, kind"), f"{FLOW} refused: {{{{kind}}}}"),
                    (each("sum", added(m.UNFINISHED_COUNT)), f"{FLOW} unfinished"),
                    (each("sum", added(m.GAP_COUNT), f"{BY_FLOW}, kind"), f"{FLOW} gap: {{{{kind}}}}"),
                ),
                steps=RED_AFTER,
            ),
            Panel(
                title="Last comparison",
                text="1: all that was to be compared is equal.",
                queries=((each("min", COMPARED, f"{BY_FLOW}, by"), f"{FLOW} by {{{{by}}}}"),),
                kind="stat",
                words=((0, "differs", "red"), (1, "equal", "green")),
            ),
            Panel(
                title="Rewritten",
                text="Batches that could not go as bytes, of all that were written.",
                queries=((f"{rate(m.TRANSCODED_BATCH_COUNT)} / on ({BY_TOPIC}) {rate(m.BATCH_COUNT)}", TOPIC),),
                unit="percentunit",
            ),
            Panel(
                title="Held back",
                text="Of each second of the last run, added up over tasks, by the flow's throttle and by quotas.",
                queries=(
                    (
                        f"{HELD_BACK} / 1000 / on ({BY_FLOW}) group_left () ({DURATION} > 0)",
                        f"{FLOW} by {{{{by}}}}",
                    ),
                ),
                unit="percentunit",
            ),
            Panel(
                title="Runs",
                text="How long the last run took, and how many there were.",
                queries=(
                    (DURATION, f"{FLOW} seconds"),
                    (f"sum by ({BY_FLOW}) (increase({of(m.RUN_COUNT)}[$window]))", f"{FLOW} runs"),
                    (f"sum by ({BY_FLOW}) (increase({of(m.SUCCESS_COUNT)}[$window]))", f"{FLOW} successes"),
                ),
            ),
        ),
    ),
)
"""Headings and their panels, three in a line."""


def dashboard() -> dict[str, Any]:
    """Return the whole dashboard."""
    return {
        "uid": "ferry",
        "title": "Ferry",
        "description": "Kafka topics copied by Ferry: the lag, the speed, overdue runs, and what is refused.",
        "tags": ["ferry", "kafka", "replication"],
        "editable": True,
        "schemaVersion": 36,
        "refresh": "1m",
        "timezone": "browser",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": list(variables())},
        "panels": list(panels()),
    }


def variables() -> Iterator[dict[str, Any]]:
    """Return the variables that can be chosen above the panels."""
    yield {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus"}
    chosen: list[str] = []
    for label, metric in (("source", m.LAST_RUN_TIME), ("target", m.LAST_RUN_TIME), ("lane", m.LAST_RUN_TIME)):
        yield _variable(label, f"label_values({metric.written}{{{', '.join(chosen)}}}, {label})")
        chosen.append(f'{label}=~"${label}"')
    yield _variable("topic", f"label_values({m.RECORD_COUNT.written}{{{SELECTED}}}, topic)")
    choices = ("1h", "6h", "1d")
    yield {
        "type": "interval",
        "name": "window",
        "label": "over",
        "query": ",".join(choices),
        "current": {"text": choices[0], "value": choices[0], "selected": True},
        "options": [{"text": one, "value": one, "selected": one == choices[0]} for one in choices],
    }


def _variable(label: str, query: str) -> dict[str, Any]:
    return {
        "type": "query",
        "name": label,
        "label": label,
        "datasource": SOURCE,
        "query": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "sort": 1,
        "current": {"text": ["All"], "value": ["$__all"], "selected": True},
    }


def panels() -> Iterator[dict[str, Any]]:
    """Return headings and panels, each with its place."""
    number, y = 0, 0
    for heading, row in ROWS:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": heading,
            "collapsed": False,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
            "panels": [],
        }
        y += 1
        x = 0
        for panel in row:
            number += 1
            yield _panel(panel, number, x, y)
            x += panel.width
            if x >= COLUMNS:
                x, y = 0, y + HEIGHT
        y += HEIGHT if x else 0


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": value, "color": colour} for value, colour in panel.steps],
        },
    }
    if panel.words:
        shown = {str(value): {"text": word, "color": colour, "index": value} for value, word, colour in panel.words}
        defaults["mappings"] = [{"type": "value", "options": shown}]
    options: dict[str, Any] = (
        {"reduceOptions": {"values": False, "calcs": ["lastNotNull"], "fields": ""}, "textMode": "auto"}
        if panel.kind == "stat"
        else {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    )
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT, "w": panel.width, "x": x, "y": y},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
        "options": options,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }


def rendered() -> str:
    """Return the file's text."""
    return json.dumps(dashboard(), indent=2) + "\n"


def main() -> int:
    """Write the file, or with --check report whether it is up to date."""
    if "--check" in sys.argv[1:]:
        same = FILE.read_text() == rendered()
        print(f"{FILE.relative_to(ROOT)} is {'up to date' if same else 'out of date'}")
        return 0 if same else 1
    FILE.write_text(rendered())
    return 0


if __name__ == "__main__":
    sys.exit(main())
