"""The JSON of `ferry config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ferry.config.account import LineAccount
from ferry.config.effective import Effective, effective, enabled_line
from ferry.config.flow.cluster import ClusterConfig
from ferry.config.flow.flow import FlowConfig
from ferry.config.reading.examine import Examined
from ferry.config.reading.findings import Setting
from ferry.config.reading.slips import hides
from ferry.config.text.problem import Problem
from ferry.ledger.sentence_codec import sentence_fields
from ferry.model import Flow

Json = dict[str, Any]


def check_json(
    examined: Examined,
    lines: tuple[LineAccount, ...],
    problems: tuple[Problem, ...],
    corrected: tuple[Problem, ...] = (),
    written: Path | None = None,
) -> Json:
    """Return the JSON of `ferry config check`: what the file means, its problems, what --fix corrected and wrote."""
    shown = {flow.flow: flow for flow in effective(examined)}
    enabled = [_flow_json(config, shown[config.flow], enabled_line(examined, config.flow)) for config in examined.flows]
    return {
        "clusters": [_cluster_json(cluster) for cluster in examined.clusters.values()],
        "flows": enabled + [_disabled_json(flow) for flow in examined.disabled],
        "lines": [_line_json(one) for one in lines],
        "unneeded": [{"line": one.line, "key": one.key, "why": one.why} for one in examined.unneeded],
        "problems": [problem_json(problem) for problem in problems],
        "corrected": [problem_json(problem) for problem in corrected],
        "written": None if written is None else str(written),
    }


def problem_json(problem: Problem) -> Json:
    """Return one finding as JSON; line null: something is missing."""
    return {
        "file": problem.file,
        "line": problem.line,
        "key": problem.key,
        "severity": problem.severity.value,
        "message": problem.message,
        "correction": _correction(problem),
        **sentence_fields(problem.message),
    }


def _correction(problem: Problem) -> list[str] | None:
    """Return the corrected lines; None if one holds a secret: pasted into a file, the masked line would destroy it."""
    if problem.correction is None or hides(problem.correction):
        return None
    return list(problem.correction)


def _cluster_json(cluster: ClusterConfig) -> Json:
    if cluster.connection is not None:
        return {"alias": cluster.alias, "bootstrap_servers": [], "airflow_connection": cluster.connection}
    return {"alias": cluster.alias, "bootstrap_servers": cluster.bootstrap_servers.split(",")}


def _line_json(one: LineAccount) -> Json:
    return {"line": one.line, "key": one.key, "fate": one.fate.value, "by": list(one.by), "why": one.why or None}


def _flow_json(config: FlowConfig, shown: Effective, enabled_line: int | None) -> Json:
    return {
        "source": config.flow.source,
        "target": config.flow.target,
        "enabled": True,
        "enabled_line": enabled_line,
        "policy": config.policy_name,
        "topics": list(config.topics.include.items),
        "topics_exclude": list(config.topics.exclude.items),
        "groups": list(config.groups.include.items),
        "groups_exclude": list(config.groups.exclude.items),
        "settings": [_setting_json(setting) for setting in shown.settings],
        "clients": [_setting_json(setting) for setting in shown.clients],
        "departures": list(shown.departures),
        "surprises": list(shown.surprises),
    }


def _disabled_json(flow: Flow) -> Json:
    return {"source": flow.source, "target": flow.target, "enabled": False}


def _setting_json(setting: Setting) -> Json:
    return {
        "name": setting.name,
        "value": setting.value,
        "line": setting.line,
        "key": setting.key,
        "acted_on": setting.is_acted_on,
    }
