"""The positions of MirrorMaker 1's consumer group, as Kafka's own tool exports them.

Source: `kafka-consumer-groups.sh --reset-offsets --to-current --dry-run --export`: lines of `topic,partition,offset`,
which begin with the group if several groups were exported.
"""

from __future__ import annotations

import csv

from ferry.errors import BadInput

_REMEDY = "write topic,partition,offset as kafka-consumer-groups.sh --export does"


def read_offsets(text: str, file: str) -> str:
    """Return the offsets in `text` in the form of `ferry.start`. Raises BadInput with the line and the remedy."""
    found: dict[tuple[str, int], int] = {}
    groups: set[str] = set()
    rows = csv.reader(text.splitlines())
    for row in rows:
        cells = [cell.strip() for cell in row]
        place = f"{file}:{rows.line_num}"
        if not any(cells):
            continue
        if len(cells) == 4:
            groups.add(cells.pop(0))
        if len(cells) != 3 or not cells[0] or not all(cell.isascii() and cell.isdigit() for cell in cells[1:]):
            raise BadInput(f"{place}: {','.join(row)!r} is not a position; {_REMEDY}")
        if len(groups) > 1:
            raise BadInput(f"{place}: positions of several groups ({', '.join(sorted(groups))}); keep MirrorMaker's")
        partition = (cells[0], int(cells[1]))
        if partition in found:
            raise BadInput(f"{place}: the position of {cells[0]}-{cells[1]} is given twice; keep one")
        found[partition] = int(cells[2])
    if not found:
        raise BadInput(f"{file}: holds no position; {_REMEDY}")
    return ", ".join(f"{topic}:{partition}:{offset}" for (topic, partition), offset in sorted(found.items()))
