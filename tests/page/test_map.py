"""The map: every cluster on the sheet, and no two flows on one line."""

from __future__ import annotations

from itertools import combinations

import pytest

from ferry.config.settings import parse_settings
from ferry_airflow.page.chart_map import NODE_HEIGHT, NODE_WIDTH, WIDTH, drawn
from ferry_airflow.page.office import OpenFlow
from ferry_airflow.page.snapshot import Snapshot
from tests.page.conftest import Still


def flows(*names: str) -> list[OpenFlow]:
    """Flows of which only the names count."""
    aliases = sorted({alias for name in names for alias in name.split("->")})
    lines = [f"clusters = {', '.join(aliases)}", *(f"{alias}.bootstrap.servers = h:1" for alias in aliases)]
    lines += [f"{name}.{key}" for name in names for key in ("enabled = true", "topics = t")]
    found = parse_settings("\n".join(lines), "test.properties").flows
    nothing = dict.fromkeys(("path", "dag", "standing", "rights", "user"))
    return [OpenFlow(config=one, watcher=Still(), seen=Snapshot(), **nothing) for one in found]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "names",
    [
        ("a->b",),
        ("a->b", "b->a"),
        ("a->b", "b->c", "c->a"),
        ("a->b", "c->d", "d->c", "e->f", "b->e"),
        tuple(f"from{number}->to{number}" for number in range(12)),
        tuple(f"hub->leaf{number}" for number in range(9)),
    ],
)
def test_places_lie_on_the_sheet_and_labels_apart(names: tuple[str, ...]) -> None:
    drawing = drawn(flows(*names))
    for place in drawing.places:
        assert NODE_WIDTH / 2 <= place.x <= WIDTH - NODE_WIDTH / 2
        assert NODE_HEIGHT / 2 <= place.y <= drawing.height - NODE_HEIGHT / 2
    for one, other in combinations(drawing.places, 2):
        assert abs(one.x - other.x) > NODE_WIDTH or abs(one.y - other.y) > NODE_HEIGHT
    assert len(drawing.lines) == len(names)
    for line, other_line in combinations(drawing.lines, 2):
        assert abs(line.x - other_line.x) > 60 or abs(line.y - other_line.y) > 30
