"""Write the tables of docs/metrics.md from the declarations in ferry.features.observe.rules.

Usage: python tools/metric_table.py [--check]. What stands between the marks is replaced; the rest is written by hand.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from ferry.features.observe.rules.mirror import MIRROR_GROUPS
from ferry.features.observe.rules.samples import COUNTERS, GAUGES, Metric

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "metrics.md"


def mirror_table() -> str:
    """Each metric of MirrorMaker 2, its counterpart, and what is to be said of it."""
    parts = []
    for group in MIRROR_GROUPS:
        rows = "".join(
            f"| `{row.name}` | {', '.join(f'`{metric.written}`' for metric in row.here) or 'none'} | {row.remark} |\n"
            for row in group.rows
        )
        parts.append(f"`{group.mbean}`\n\n| MirrorMaker 2 | here | |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def all_metrics() -> str:
    """Every metric by its name, its kind, its labels and its meaning."""
    rows = "".join(map(_row, (*COUNTERS, *GAUGES)))
    return f"| metric | kind | labels | meaning |\n|---|---|---|---|\n{rows}"


def _row(metric: Metric) -> str:
    kind = "counter" if metric.counts else "gauge"
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.written}` | {kind} | {labels} | {metric.meaning} |\n"


TABLES: dict[str, Callable[[], str]] = {"mirror": mirror_table, "all": all_metrics}


def rendered(page: str) -> str:
    """The page with its tables as they should be. Raises ValueError where a mark is not there."""
    for name, table in TABLES.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
        head, rest = page.split(begin)
        _, tail = rest.split(end)
        page = f"{head}{begin}\n{table()}\n{end}{tail}"
    return page


def main() -> int:
    """Write the page, or with --check say whether it is up to date."""
    page = FILE.read_text()
    if "--check" in sys.argv[1:]:
        same = page == rendered(page)
        print(f"{FILE.relative_to(ROOT)} is {'up to date' if same else 'out of date'}")
        return 0 if same else 1
    FILE.write_text(rendered(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
