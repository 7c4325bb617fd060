"""The table of counterparts has every metric that MirrorMaker 2 declares in its jars, and no other."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from ferry.dev.jars import jars
from ferry.features.observe.rules.mirror import MIRROR_GROUPS
from ferry.features.observe.rules.samples import METRICS

TOOL = Path(__file__).parents[3] / "tools" / "metric_table.py"
_NAME = re.compile(r"[a-z]+(-[a-z]+)+")
_OTHERS = re.compile(
    r"(sink|put|connect|transform|predicate|rebalance)-.*|partition-count|leader-name|completed-.*|time-since-.*"
    r"|connector-(?!type|class|version).*|task-(?!class|version).*|source-task-metrics"
    r"|offset-commit-(seq|completion|skip)-.*"
)
"""Of sinks, workers and transforms, and names of groups."""


def constants(jar: str, name: str) -> Iterator[str]:
    """The texts in a class's constant pool (JVM specification, 4.4)."""
    with zipfile.ZipFile(jars("4.3.0") / jar) as opened:
        data = opened.read(f"{name}.class")
    sizes = {7: 2, 8: 2, 16: 2, 19: 2, 20: 2, 15: 3, 3: 4, 4: 4, 9: 4, 10: 4, 11: 4, 12: 4, 17: 4, 18: 4, 5: 8, 6: 8}
    at, left = 10, struct.unpack_from(">H", data, 8)[0] - 1
    while left > 0:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            yield data[at + 3 : at + 3 + length].decode()
            at += 3 + length
        else:
            at += 1 + sizes[tag]
        left -= 2 if tag in (5, 6) else 1


def declared(jar: str, *classes: str) -> set[str]:
    return {text for name in classes for text in constants(jar, name) if _NAME.fullmatch(text)}


def test_every_metric_of_mirror_maker_has_its_row() -> None:
    folder = "org/apache/kafka/connect/mirror"
    mirror = declared("connect-mirror-4.3.0.jar", f"{folder}/MirrorSourceMetrics", f"{folder}/MirrorCheckpointMetrics")
    told = {row.name for group in MIRROR_GROUPS if "connect.mirror" in group.mbean for row in group.rows}
    assert told == mirror


def test_every_metric_that_connect_has_of_a_source_has_its_row() -> None:
    registry = declared("connect-runtime-4.3.0.jar", "org/apache/kafka/connect/runtime/ConnectMetricsRegistry")
    expected = {name for name in registry if not _OTHERS.fullmatch(name)} - {"connector-metrics", "task-error-metrics"}
    told = {row.name for group in MIRROR_GROUPS if "connect.mirror" not in group.mbean for row in group.rows}
    assert told - {"status"} == expected


def test_a_counterpart_is_a_metric_that_runs_write_and_what_has_none_says_why() -> None:
    for group in MIRROR_GROUPS:
        for row in group.rows:
            assert set(row.here) <= set(METRICS)
            assert row.here or row.remark, f"{row.name} has neither a counterpart nor a reason"


def test_the_tables_of_the_page_are_up_to_date() -> None:
    command = [sys.executable, str(TOOL), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run python tools/metric_table.py"
