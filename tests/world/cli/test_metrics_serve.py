"""`ferry metrics serve`, as Prometheus and a person at the terminal meet it."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path

from ferry.features.observe.acts.endpoint import ERROR
from ferry.features.observe.acts.textfile import parse, update
from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.of_run import after_run
from tests.commands import promtool
from tests.program import ferry, finished, start
from tests.pure.decide.test_metrics import flow, report
from tests.tiers import ANSWER_S


def scraped(url: str) -> str:
    with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
        text: str = answer.read().decode()
    return text


def test_a_scrape_has_what_all_files_tell_now(tmp_path: Path) -> None:
    by_topic = flow(f"ferry.metrics.folder = {tmp_path}")
    by_partition = flow(
        f"ferry.metrics.folder = {tmp_path}", "ferry.metrics.per.partition = true", "ferry.lane = second"
    )
    for one in (by_topic, by_partition):
        update(one, lambda before, one=one: after_run(before, report(1, 2), one))  # type: ignore[misc]
    (tmp_path / "other.prom").write_text("not_ours 1\n")
    config = tmp_path / "flows.properties"
    config.write_text("")
    server = start("metrics", "serve", str(tmp_path), "--port", "0", "--json", config=config)
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        text = scraped(url)
        labels = {"topic": "a.orders", "lane": "live", "source": "a", "target": "b"}
        values = parse(text)
        assert values[m.RECORD_COUNT.name, tuple(sorted(labels.items()))] == 2
        assert "not_ours" not in text
        assert values[ERROR, ()] == 0
        done = promtool("check", "metrics", text=text)
        assert done.returncode in (0, 3), done.stderr  # 3: it has advice
        assert "error" not in done.stderr.replace(ERROR, "")

        update(by_topic, lambda before: after_run(before, report(2, 3), by_topic))
        assert parse(scraped(url))[m.RECORD_COUNT.name, tuple(sorted(labels.items()))] == 5
        (tmp_path / "ferry__x__y.prom").write_text("ferry_run_count_total{")
        broken = parse(scraped(url))
        assert broken[ERROR, ()] == 1
        assert broken[m.RECORD_COUNT.name, tuple(sorted(labels.items()))] == 5, "the others are still there"
    finally:
        server.send_signal(signal.SIGINT)
        answer = finished(server)
    assert "Traceback" not in answer.err


def test_what_cannot_be_served_is_said_before(tmp_path: Path) -> None:
    missing = ferry("metrics", "serve", tmp_path / "none")
    assert (missing.code, "make it" in missing.err) == (2, True)
    config = tmp_path / "flows.properties"
    config.write_text("clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\na->b.enabled = true\n")
    unnamed = ferry("metrics", "serve", config=config)
    assert (unnamed.code, "name the folder" in unnamed.err) == (2, True)
