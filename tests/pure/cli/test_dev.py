"""`ferry dev up` of a cluster that exists with other settings: each of them is named, with both values."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ferry.dev import ClusterSpec
from ferry.dev.cluster import STATE_FILE, known_as
from ferry.dev.files import write_json
from ferry.dev.spec import Listener, differences
from ferry.errors import BadInput
from tests.golden import Golden

SPEC = ClusterSpec(name="source", properties={"num.partitions": "3"})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, []),
        ({"brokers": 3}, [("--brokers", "1", "3")]),
        ({"version": "3.9.1"}, [("--kafka", "4.3.0", "3.9.1")]),
        ({"properties": {"num.partitions": "6"}}, [("--property num.partitions", "3", "6")]),
        ({"properties": {}}, [("--property num.partitions", "3", "the default")]),
        (
            {"properties": {"num.partitions": "3", "auto.create.topics.enable": ""}, "heap_mb": 1024},
            [("--property auto.create.topics.enable", "the default", "''"), ("heap_mb", "512", "1024")],
        ),
        (
            {"listeners": (*SPEC.listeners, Listener(name="TLS", protocol="SSL"))},
            [("listeners", "PLAINTEXT:PLAINTEXT", "PLAINTEXT:PLAINTEXT TLS:SSL")],
        ),
        ({"class_path": ("a.jar", "b.jar")}, [("class_path", "''", "a.jar b.jar")]),
    ],
)
def test_each_setting_that_differs_is_named_with_both_values(
    change: dict[str, Any], named: list[tuple[str, str, str]]
) -> None:
    assert differences(SPEC, replace(SPEC, **change)) == named


def test_another_spec_under_a_known_name_is_refused_by_what_differs(tmp_path: Path, golden: Golden) -> None:
    directory = tmp_path / SPEC.name
    directory.mkdir()
    write_json(directory / STATE_FILE, {"spec": asdict(SPEC), "cluster_id": "id", "nodes": []})
    found = known_as(SPEC, tmp_path)
    assert found is not None
    assert found.spec == SPEC
    for name, wanted in {
        "one": replace(SPEC, brokers=3),
        "two": replace(SPEC, brokers=3, properties={}),
    }.items():
        with pytest.raises(BadInput) as refused:
            known_as(wanted, tmp_path)
        golden(str(refused.value).replace(str(tmp_path), "HOME"), name)
