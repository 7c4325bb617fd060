"""Airflow's trigger forms offer the topics that the file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry_airflow.dags import flow_dags
from ferry_airflow.form import MOST_OFFERED

FILE = """clusters = a, b
a.bootstrap.servers = h:1
b.bootstrap.servers = h:2
a->b.enabled = true
a->b.topics = {topics}
"""
MANY = [f"t{at}" for at in range(MOST_OFFERED + 1)]


@pytest.mark.parametrize(
    ("topics", "offered"),
    [
        ("orders, payments.card, x.replica", ["orders", "payments.card"]),
        ("orders, payments.*", None),
        (".*", None),
        (", ".join(MANY), None),
    ],
)
def test_a_form_lets_choose_among_topics_if_the_file_names_each(
    tmp_path: Path, topics: str, offered: list[str] | None
) -> None:
    file = tmp_path / "flows.properties"
    file.write_text(FILE.format(topics=topics))
    params = {name: dag.params.get_param("topics") for name, dag in flow_dags(file).items() if "topics" in dag.params}
    assert {name.partition("__")[0] for name in params} == {"ferry", "ferry_verify", "ferry_backfill", "ferry_drill"}
    for name, param in params.items():
        shown = None if name.startswith("ferry_verify") else offered  # it compares what the ledger has
        assert param.schema.get("examples") == shown, name
        assert param.description is not None
        assert ("one per line" in param.description) == (shown is None), name
