"""The flows of the page where several sites share one file: which are local, and which are in the file at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.model import Flow
from ferry.reader.flows import Configured, Flows
from tests.golden import Golden

TEXT = """clusters = a, b
a.bootstrap.servers = a:1
b.bootstrap.servers = b:1
a->b.enabled = true
a->b.topics = x
b->a.enabled = true
b->a.topics = x
"""
FORTH, BACK = Flow(source="a", target="b"), Flow(source="b", target="a")


@pytest.mark.parametrize(("local", "flows"), [("b", [FORTH]), ("a", [BACK]), ("", [FORTH, BACK])])
def test_a_flow_that_is_not_local_is_enabled_nevertheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: str, flows: list[Flow]
) -> None:
    file = tmp_path / "flows.properties"
    file.write_text(TEXT)
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    monkeypatch.setenv("FERRY_CLUSTERS", local)
    found = Flows().now()
    assert [one.flow for one in found.flows] == flows
    assert found.enabled == {FORTH, BACK}


@pytest.mark.parametrize(
    "configured",
    [Configured(path=Path("f.properties"), enabled=frozenset({FORTH, BACK})), Configured(), Configured(trouble="why")],
    ids=["not local", "not in the file", "no file"],
)
def test_why_a_flow_is_not_there(configured: Configured, golden: Golden) -> None:
    golden(configured.lacks(BACK))
