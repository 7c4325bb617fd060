"""The JSON of `ferry config`: a contract, described in docs/json.md with a schema for each command."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import enum, filled, many, typed
from ferry.config.account import LineAccount, LineFate
from ferry.config.effective import Effective, effective, enabled_line
from ferry.config.flow.cluster import ClusterConfig
from ferry.config.flow.flow import FlowConfig
from ferry.config.reading.examine import Examined
from ferry.config.reading.findings import Setting, Unneeded
from ferry.config.reading.typos import hides
from ferry.config.text.problem import Problem, Severity
from ferry.ledger.sentence_codec import OF_MESSAGE
from ferry.model import Flow, Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShownFlow:
    """A flow of the file; only an enabled one has a configuration, its values and the line that enables it."""

    flow: Flow
    config: FlowConfig | None = None
    shown: Effective | None = None
    enabled_line: int | None = None


def _is_disabled(one: _ShownFlow) -> bool:
    return one.config is None


def _servers(cluster: ClusterConfig) -> list[str]:
    return [] if cluster.connection is not None else cluster.bootstrap_servers.split(",")


def _correction(problem: Problem) -> list[str] | None:
    """Return the corrected lines; None if one holds a secret: pasted into a file, the masked line would destroy it."""
    if problem.correction is None or hides(problem.correction):
        return None
    return list(problem.correction)


def _is_plain(problem: Problem) -> bool:
    return not isinstance(problem.message, Sentence)


CLUSTER = Form(
    ClusterConfig,
    F("alias"),
    F("bootstrap_servers", _servers, typed(list[str])),
    F(
        "airflow_connection",
        "connection",
        typed(str),
        omit=lambda cluster: cluster.connection is None,
        says="the connection that holds the cluster's settings; bootstrap_servers is empty then",
    ),
    name="cluster",
)

SETTING = Form(
    Setting,
    F("name", says="without alias or flow; of a client: side, role and Java name"),
    F("value", says="as written; secrets are hidden"),
    F("line", least=1, says="null: the default"),
    F("key", says="as the line spells it"),
    F("acted_on", "is_acted_on", says="false: it is read and checked, but no run acts on it"),
)

FLOW = Form(
    _ShownFlow,
    F("source", "flow.source"),
    F("target", "flow.target"),
    F("enabled", lambda one: one.config is not None, typed(bool)),
    F("enabled_line", kind=typed(int, 1), omit=_is_disabled, says="the line that enables it"),
    F("policy", "config.topics.policy_name", omit=_is_disabled),
    F("topics", "config.topics.filter.include.items", many(), omit=_is_disabled),
    F("topics_exclude", "config.topics.filter.exclude.items", many(), omit=_is_disabled),
    F("groups", "config.groups.filter.include.items", many(), omit=_is_disabled),
    F("groups_exclude", "config.groups.filter.exclude.items", many(), omit=_is_disabled),
    F("settings", "shown.settings", many(SETTING.kind), omit=_is_disabled),
    F("clients", "shown.clients", many(SETTING.kind), omit=_is_disabled),
    F("departures", "shown.departures", many(), omit=_is_disabled),
    F(
        "surprises",
        "shown.surprises",
        many(),
        omit=_is_disabled,
        says="lines whose effect is easily overlooked, each with that effect",
    ),
    name="flow",
)
"""A flow of the file; one that is not enabled has its source, target and enabled only."""

LINE = Form(
    LineAccount,
    F("line", least=1, says="where the entry begins"),
    F("key"),
    F("fate", kind=enum(LineFate), says="problem: see `problems`"),
    F("by", kind=many(typed(int, 1)), says="the lines that override it"),
    F("why", kind=filled(""), says="null: it is used, or a problem has the reason"),
    name="line",
)

UNNEEDED = Form(Unneeded, F("line", least=1), F("key"), F("why"))

PROBLEM = Form(
    Problem,
    F("file"),
    F("line", least=1, says="null: something is missing"),
    F("key"),
    F("severity", kind=enum(Severity)),
    F("message"),
    F(
        "correction",
        _correction,
        typed(list[str] | None),
        says="what to write instead, comments before the entry; null: yours to find, or it holds a secret",
    ),
    *(replace(one, omit=_is_plain) for one in OF_MESSAGE),
)

problem_json = PROBLEM.dump
"""Return one finding as JSON; line null: something is missing."""


def check_json(
    examined: Examined,
    lines: tuple[LineAccount, ...],
    problems: tuple[Problem, ...],
    corrected: tuple[Problem, ...] = (),
    written: Path | None = None,
) -> Json:
    """Return the JSON of `ferry config check`: what the file means, its problems, what --fix corrected and wrote."""
    values = {flow.flow: flow for flow in effective(examined)}
    enabled = [
        _ShownFlow(
            flow=config.flow,
            config=config,
            shown=values[config.flow],
            enabled_line=enabled_line(examined, config.flow),
        )
        for config in examined.flows
    ]
    disabled = [_ShownFlow(flow=flow) for flow in examined.disabled]
    return {
        "clusters": [CLUSTER.dump(cluster) for cluster in examined.clusters.values()],
        "flows": [FLOW.dump(flow) for flow in (*enabled, *disabled)],
        "lines": [LINE.dump(one) for one in lines],
        "unneeded": [UNNEEDED.dump(one) for one in examined.unneeded],
        "problems": [problem_json(problem) for problem in problems],
        "corrected": [problem_json(problem) for problem in corrected],
        "written": None if written is None else str(written),
    }
