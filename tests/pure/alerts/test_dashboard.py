"""The dashboard for Grafana: by Grafana's own schema, and its queries by Prometheus's own parser."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from ferry.features.observe.rules.samples import METRICS

ROOT = Path(__file__).parents[3]
FILE = ROOT / "alerts" / "ferry-dashboard.json"
PAGE = json.loads(FILE.read_text())
COMMON = {"source", "target", "lane"}


def expressions() -> Iterator[str]:
    for panel in PAGE["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"]


def test_grafanas_schema_knows_every_field() -> None:
    """What its types do not know is lost on the way through them."""
    back = json.loads(json.dumps(Dashboard.from_json(PAGE), cls=JSONEncoder))
    assert missing(PAGE, back) == []


def missing(wanted: Any, found: Any, where: str = "") -> list[str]:
    """What of `wanted` is not in `found`."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return [where]
        return [one for key, value in wanted.items() for one in missing(value, found.get(key), f"{where}.{key}")]
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return [where]
        pairs = zip(wanted, found, strict=True)
        return [one for index, (a, b) in enumerate(pairs) for one in missing(a, b, f"{where}[{index}]")]
    return [] if wanted == found else [f"{where}: {wanted!r} became {found!r}"]


def test_queries_ask_for_metrics_and_labels_that_runs_write() -> None:
    labels = {metric.written: COMMON | set(metric.labels) for metric in METRICS}
    asked = [*expressions(), *(one["query"] for one in PAGE["templating"]["list"] if one["type"] == "query")]
    names = re.findall(r"\b(ferry_[a-z_]+)\b(?:\{([^}]*)\})?", "\n".join(asked))
    assert names
    for name, matchers in names:
        assert name in labels, f"no run writes {name}"
        assert set(re.findall(r"(\w+)=~?\"", matchers)) <= labels[name]


def test_panels_have_places_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PAGE["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
    ids = [panel["id"] for panel in PAGE["panels"]]
    assert len(set(ids)) == len(ids)


def test_the_words_of_the_dashboard_are_checked() -> None:
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "check_words.py"))
    texts = [text.words for text in tool["of_dashboard"](FILE.read_text())]
    assert "Rewritten" in texts
    assert "alerts/*.json" in tool["CHECKED"]
    assert list(tool["complaints"](FILE)) == []


def test_the_words_of_the_rules_are_checked() -> None:
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "check_words.py"))
    rules = FILE.with_name("ferry-rules.yml")
    assert "alerts/ferry-rules.yml" in tool["CHECKED"]
    texts = list(tool["of_rules"](rules.read_text()))
    assert len(texts) == 2 * rules.read_text().count("- alert: ")
    assert any("Check with\n" in text.words for text in texts), "a folded text is read whole"
    assert list(tool["complaints"](rules)) == []
