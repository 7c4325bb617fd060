"""Write the table of docs/upgrade.md from the kinds of records that a ledger has (src/ferry/ledger/kinds.py).

Usage: python tools/ledger_table.py [--check]. The text between the marks is replaced; the rest is written by hand.
"""

import sys
from pathlib import Path

from ferry.ledger.kinds import KINDS, LedgerKind

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "upgrade.md"
BEGIN, END = "<!-- begin kinds -->\n", "<!-- end kinds -->\n"


def table() -> str:
    """Return one row for each kind of record that has another format than 1, in the order of the code."""
    rows = "".join(_row(name, kind) for name, kind in KINDS.items() if kind.formats != (1,))
    return f"| kind | `v` | meaning |\n|---|---|---|\n{rows}"


def _row(name: str, kind: LedgerKind) -> str:
    return f"| `{name}` | {', '.join(map(str, kind.formats))} | {kind.says} |\n"


def rendered(page: str) -> str:
    """Return the page with its current table. Raises ValueError when a mark is missing."""
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


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
