"""Write the tables of docs/metrics.md from the declarations in ferry.features.observe.rules.

Usage: python tools/metric_table.py [--check]. The text between the marks is replaced; the rest is written by hand.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from ferry.features.observe.rules.mirror import MIRROR_GROUPS
from ferry.features.observe.rules.samples import COUNTERS, GAUGES, Metric

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "metrics.md"


def mirror_table() -> str:
    """Return each metric of MirrorMaker 2, its counterpart, and a remark."""
    parts = []
    for group in MIRROR_GROUPS:
        rows = "".join(
            f"| `{row.name}` | {', '.join(f'`{metric.written}`' for metric in row.here) or 'none'} | {row.remark} |\n"
            for row in group.rows
        )
        parts.append(f"`{group.mbean}`\n\n| MirrorMaker 2 | here | |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def all_metrics() -> str:
    """Return every metric with its name, its kind, its labels and its meaning."""
    rows = "".join(map(_row, (*COUNTERS, *GAUGES)))
    return f"| metric | kind | labels | meaning |\n|---|---|---|---|\n{rows}"


def _row(metric: Metric) -> str:
    kind = "counter" if metric.counts else "gauge"
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.written}` | {kind} | {labels} | {metric.meaning} |\n"


TABLES: dict[str, Callable[[], str]] = {"mirror": mirror_table, "all": all_metrics}


def rendered(page: str) -> str:
    """Return the page with its current tables. Raises ValueError when a mark is missing."""
    for name, table in TABLES.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
        head, rest = page.split(begin)
        _, tail = rest.split(end)
        page = f"{head}{begin}\n{table()}\n{end}{tail}"
    return page


def main() -> int:
    """Write the page, or with --check report whether it is up to date."""
    page = FILE.read_text()
    if "--check" in sys.argv[1:]:
        same = page == rendered(page)
        print(f"{FILE.relative_to(ROOT)} is {'up to date' if same else 'out of date'}")
        return 0 if same else 1
    FILE.write_text(rendered(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
