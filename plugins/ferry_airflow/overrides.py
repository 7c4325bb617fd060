"""What a DAG file may change about the DAGs of all flows; what Ferry needs is not among it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from airflow.sdk import DAG

from ferry.errors import BadInput
from ferry.model import Flow
from ferry_airflow.naming import VERBS
from ferry_airflow.report_link import url_of_flow

Callback = Callable[[Any], Any]
"""A function or a notifier that Airflow calls with the context of a DAG run."""

OF_THE_FILE = {"retries": "ferry.retries", "conn_id": "ferry.spark.conn.id", "outlets": "ferry.airflow.assets"}
"""Arguments of tasks that the configuration file sets, and its keys."""
FERRYS = ("config", "flow", "params", "priority_weight", "trigger_rule", "weight_rule")
"""Arguments of tasks that Ferry sets itself: the order of tasks, and which run goes first in a pool."""


class DagOverrides(TypedDict, total=False):
    """The keyword arguments of `flow_dags`; each holds for all DAGs of all flows."""

    default_args: Mapping[str, Any]
    """Arguments of tasks, as in Airflow's DAG."""
    owner: str
    queue: str
    """The queue of an executor that has several."""
    pool: str
    """The pool of tasks that are not in the flow's own pool, which `ferry.pool` names."""
    tags: Collection[str]
    """Tags in addition to Ferry's own."""
    params: Mapping[str, Any]
    """Fields in addition to those of Ferry's forms."""
    on_success_callback: Callback | list[Callback]
    on_failure_callback: Callback | list[Callback]
    dag_display_name: str
    """A text with `{role}`, `{source}` and `{target}`, such as `Ferry {role}: {source} to {target}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What a DAG file changes of the generated DAGs, checked."""

    default_args: Mapping[str, Any] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    params: Mapping[str, Any] = field(default_factory=dict)
    of_dag: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that the DAG gets as they are."""
    display: str = ""

    @classmethod
    def of(cls, given: DagOverrides) -> Overrides:
        """Check what a DAG file has given. Raises BadInput, in one sentence, for what it may not change."""
        names = DagOverrides.__annotations__
        for name in given:
            if name not in names:
                raise BadInput(f"flow_dags() cannot override {name}: it takes {', '.join(sorted(names))}")
        tasks = dict(given.get("default_args", {}))
        for name in tasks:
            if name in OF_THE_FILE:
                raise BadInput(f"default_args of flow_dags() has {name}: set {OF_THE_FILE[name]} in the file instead")
            if name in FERRYS:
                raise BadInput(f"default_args of flow_dags() has {name}, which Ferry sets itself: leave it out")
        tasks |= {name: value for name, value in given.items() if name in ("owner", "queue", "pool")}
        found = cls(
            default_args=tasks,
            tags=frozenset(given.get("tags", ())),
            params=given.get("params", {}),
            of_dag={name: value for name, value in given.items() if name.startswith("on_")},
            display=given.get("dag_display_name", ""),
        )
        found.name("copy", Flow(source="a", target="b"))
        return found

    def name(self, role: str, flow: Flow) -> str:
        """Return the name that Airflow shows for a DAG; empty: its id. Raises BadInput for an unknown field."""
        try:
            return self.display.format(role=role, source=flow.source, target=flow.target)
        except (LookupError, ValueError, AttributeError) as error:
            raise BadInput(
                f"dag_display_name of flow_dags() is {self.display!r}, which cannot be filled in ({error}): "
                "its fields are {role}, {source} and {target}"
            ) from None

    def form(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a trigger form with the fields of the DAG file after Ferry's own. Raises BadInput for one of these."""
        for name in self.params:
            if name in own:
                raise BadInput(f"params of flow_dags() has {name}, which is a field of Ferry's own: name it otherwise")
        return {**own, **self.params}


NOTHING = Overrides()


def ferry_dag(
    name: str,
    role: str,
    flow: Flow,
    overrides: Overrides,
    *,
    form: Mapping[str, Any] | None = None,
    default_args: Mapping[str, Any] | None = None,
    doc_md: str | None,
    **arguments: Any,
) -> DAG:
    """Return an empty DAG of a flow: one run at a time, no run for times that have passed.

    Its documentation in Airflow is `doc_md`, with a link to the flow on the page.

    `role` is what its runs do: copy, verify, groups, backfill, drill, or the verb of a switch. `form` is Ferry's own
    part of the trigger form; None if it is set later.
    """
    kind = "switch" if role in VERBS else role
    if overrides.display:
        arguments["dag_display_name"] = overrides.name(role, flow)
    return DAG(
        name,
        catchup=False,
        max_active_runs=1,
        tags=["ferry", f"ferry:{kind}", flow.source, flow.target, *sorted(overrides.tags)],
        default_args={"owner": "ferry", **(default_args or {}), **overrides.default_args},
        doc_md=f"{doc_md or ''}\n[{flow} on Ferry's page]({url_of_flow(flow)})\n",
        params=None if form is None else overrides.form(form),
        **overrides.of_dag,
        **arguments,
    )
