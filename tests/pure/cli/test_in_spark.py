"""What takes Spark for transformed topics, and what says so before it begins anything."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import parse_settings
from ferry.errors import Refused
from ferry.features.records.cli.in_spark import copy_of
from ferry.program import main
from ferry.run.local import refuse_transforms
from tests.golden import Golden, brief

TEXT = """
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
topics = orders, clicks
"""
MASKED = "ferry.transforms = masked\nferry.transform.masked.topics = orders\nferry.transform.masked.where = TRUE\n"


def flow_of(text: str) -> FlowConfig:
    return parse_settings(text, "f.properties").flow("a->b")


def test_a_switch_of_a_flow_with_transforms_does_not_begin_where_there_is_no_spark(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    copy_of(flow_of(TEXT + MASKED))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    copy_of(flow_of(TEXT))
    with pytest.raises(Refused) as caught:
        copy_of(flow_of(TEXT + MASKED))
    golden(caught.value)


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "a->b", "--sample", "3"],
        ["run", "a->b", "--spark"],
        ["verify", "a->b", "--spark"],
    ],
    ids=brief,
)
def test_what_takes_spark_says_so_before_a_cluster_is_asked(
    command: list[str],
    golden: Golden,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "flows.properties"
    config.write_text(TEXT + MASKED)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SystemExit) as ended:
        main([*command, "--config", str(config)])
    assert ended.value.code == Refused.exit_code
    golden(capsys.readouterr().err)


def test_only_topics_that_a_transform_names_take_spark(golden: Golden) -> None:
    flow = flow_of(TEXT + MASKED)
    refuse_transforms(flow, ["clicks"])
    refuse_transforms(flow_of(TEXT), None)
    for only in (None, ["clicks", "orders"]):
        with pytest.raises(Refused) as caught:
            refuse_transforms(flow, only)
        golden(caught.value)
