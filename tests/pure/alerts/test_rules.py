"""The rules for Prometheus, held against Prometheus's own tool (Debian's package prometheus)."""

from __future__ import annotations

import re
from pathlib import Path

from ferry.features.observe.rules.samples import METRICS

FOLDER = Path(__file__).parents[3] / "alerts"


def test_every_metric_of_the_rules_is_one_that_runs_write_and_every_alert_is_tried() -> None:
    rules, tried = ((FOLDER / name).read_text() for name in ("ferry-rules.yml", "ferry-rules-test.yml"))
    written = {metric.name + ("_total" if metric.counts else "") for metric in METRICS}
    code = "\n".join(line for line in rules.splitlines() if not line.lstrip().startswith("#"))
    assert set(re.findall(r"\bferry_[a-z_]+\b", code)) <= written
    for alert in re.findall(r"- alert: (\w+)", rules):
        assert re.search(rf"alertname: {alert}\n\s+exp_alerts:\n", tried), f"{alert} is never seen to fire"
