"""What a request needs for its answer: the last status of the flow that it names, and what its user may do with it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request, status

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.settings import GroupsSettings
from ferry.features.lanes.settings import BackfillSettings
from ferry.features.records.settings import RecordSettings
from ferry.model import Flow
from ferry.model.switch import Verb
from ferry.page.question import Question
from ferry.reader.client import Reader
from ferry.reader.documents import Answer, PastState, RunDigest, Status
from ferry.reader.flows import Configured, Flows
from ferry_airflow.naming import dag_id, other_dags
from ferry_airflow.page.access import (
    NO_RIGHTS,
    RUN,
    Rights,
    User,
    may_read,
    may_see,
    may_see_faults,
    refuse,
    rights_of,
    seen_by,
)
from ferry_airflow.page.airflow_side import DagState, dag_states, with_failed, with_older
from ferry_airflow.page.filters import ms_of
from ferry_airflow.page.flow_health import (
    Expected,
    Standing,
    ended_run,
    is_begun,
    is_left,
    is_overdue,
    limits_of,
    open_run,
    standing,
)
from ferry_airflow.page.retries import with_retries
from ferry_airflow.page.retry_words import Retry
from ferry_airflow.page.run_words import Badge, run_badge
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import in_page_threads

DAG_RUNS = 25
"""How many of Airflow's newest runs of a flow's DAG each of its pages reads; those with runs read more (with_runs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageState:
    """What the page keeps between requests."""

    flows: Flows
    reader: Reader
    tabs: tuple[Tab, ...]
    """The tabs of a flow's pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFlow:
    """A flow that the user may see."""

    config: FlowConfig
    path: Path
    reader: Reader
    seen: Status
    dag: DagState
    standing: Standing
    rights: Rights
    """NO_RIGHTS in the list of flows, which has no buttons."""
    user: str

    @property
    def flow(self) -> Flow:
        """The name of the flow."""
        return self.config.flow

    def ask(self, question: Question[Any]) -> Answer:
        """Return the reader's answer about the flow."""
        return self.reader.ask(str(self.flow), question)

    @property
    def dag_id(self) -> str:
        """The id of the DAG of its micro-runs."""
        return dag_id(self.flow)

    @property
    def has_window_dag(self) -> bool:
        """Whether the flow has a DAG of windows: ferry.backfill.windows is not none."""
        return self.config.of(BackfillSettings).windows is not None

    @property
    def has_groups_dag(self) -> bool:
        """Whether the flow has a DAG that syncs groups: ferry.groups.schedule is set, and offsets are written."""
        return self.config.of(GroupsSettings).dag is not None and self.config.syncs_groups

    @property
    def shows_records(self) -> bool:
        """Whether the file lets the page show the flow's records, to users who may see them."""
        return self.config.of(RecordSettings).on_page

    @property
    def limits(self) -> str:
        """The limits of bytes and records that one run of the flow has."""
        return limits_of(self.config.copy.budget)

    @property
    def ended_run(self) -> RunDigest | None:
        """The last run that has ended."""
        return ended_run(self.seen, self.dag, wall_ms())

    @property
    def open_run(self) -> RunDigest | None:
        """The active run, as far as the ledger shows it."""
        return open_run(self.seen, self.dag, wall_ms())

    def begun_ms(self, run: str) -> int | None:
        """Return when a run of the live lane began, by the ledger or else by Airflow; None: not known."""
        ours = next((one.started_ms for one in self.seen.runs if one.run == run), None)
        theirs = next((one.started or one.queued for one in self.dag.runs if one.run == run), None)
        return ms_of(theirs) if ours is None else ours

    def retry_of(self, run: str) -> Retry | None:
        """Return the task of an active run of the live lane that is tried again; None: none, or it is not known."""
        return next((one.retry for one in self.dag.runs if one.run == run), None)

    @property
    def is_overdue(self) -> bool:
        """Whether Airflow should have begun its next run long ago."""
        return is_overdue(self.dag, wall_ms())

    def badge_of(self, state: PastState, run: str, heard_ms: int, elsewhere: DagState | None = None) -> Badge:
        """Return the word for a run that last wrote at `heard_ms`.

        `elsewhere`: the run is of another lane, and this is the state of its DAG.
        """
        if elsewhere is None:
            begun, seen, dag = is_begun(self.dag, run), self.seen, self.dag
        else:
            begun, seen, dag = False, replace(self.seen, runs=()), elsewhere
        return run_badge(state, at_work=begun or is_left(seen, dag, state, run, heard_ms, wall_ms()))

    def badge(self, run: RunDigest) -> Badge:
        """Return the word for a run of the flow's own lane."""
        return self.badge_of(run.state, run.run, run.ended_ms)


def office_of(request: Request) -> PageState:
    """Return the state of this application."""
    office: PageState = request.app.state.office
    return office


async def _office(request: Request) -> PageState:
    return office_of(request)  # a function that is not a coroutine would take a thread of Airflow's


OfficeDep = Annotated[PageState, Depends(_office)]


def has_back(open_flow: OpenFlow, office: PageState) -> bool:
    """Return whether the file enables the opposite flow, be it local or not: a switch reads the whole file."""
    return open_flow.flow.back in office.flows.now().enabled


def verbs_of(open_flow: OpenFlow, office: PageState) -> list[str]:
    """Return the switches that the user may start; a failback needs the opposite flow."""
    return [verb for verb in open_flow.rights.switch if verb != Verb.FAILBACK or has_back(open_flow, office)]


HIDDEN = (
    "Only users who may see import errors in Airflow see what is wrong with the file of Ferry's flows: ask one of them"
)


def visible_file(configured: Configured, user: User) -> Configured:
    """Return the file as far as the user may see it: its mistakes may name flows that the user may not see."""
    if may_see_faults(user):
        return configured
    return replace(configured, path=None, trouble=HIDDEN if configured.trouble else "")


def visible(office: PageState, user: User, *, runs: int) -> tuple[Configured, list[OpenFlow]]:
    """Return the flows that the user may see, each with `runs` runs of its DAG; and the file as far as allowed."""
    configured = office.flows.now()
    allowed = seen_by(user, (flow.flow for flow in configured.flows))
    chosen = [flow for flow in configured.flows if flow.flow in allowed]
    names = {flow.flow: dag_id(flow.flow) for flow in chosen}
    states = dag_states(dict.fromkeys(names.values(), runs))
    dags = with_retries(user, {name: _as_seen(states[name], allowed[flow]) for flow, name in names.items()})
    statuses = office.reader.statuses([str(flow.flow) for flow in chosen], closely=False)
    found = [
        _opened(office, configured, flow, seen, dags[names[flow.flow]], user, closely=False)
        for flow, seen in zip(chosen, statuses, strict=True)
    ]
    return visible_file(configured, user), found


def _as_seen(dag: DagState, runs: bool) -> DagState:
    """Return a DAG as far as the user may see it: with or without its runs."""
    return dag if runs else replace(dag, runs=(), hides_runs=True)


def _opened(
    office: PageState,
    configured: Configured,
    flow: FlowConfig,
    seen: Status,
    dag: DagState,
    user: User,
    *,
    closely: bool = True,
) -> OpenFlow:
    assert configured.path is not None
    return OpenFlow(
        config=flow,
        path=configured.path,
        reader=office.reader,
        seen=seen,
        dag=dag,
        standing=standing(seen, dag, Expected.of(flow), wall_ms()),
        rights=rights_of(user, flow.flow) if closely else NO_RIGHTS,
        user=user.get_name(),
    )


@in_page_threads
def open_flow(source: str, target: str, user: User, office: OfficeDep) -> OpenFlow:
    """Return the flow of the address; 403 if its DAG may not be seen, 404 if it is not enabled or not local."""
    wanted = Flow(source=source, target=target)
    refuse(may_see(user, wanted), f"see flow {wanted}")
    configured = office.flows.now()
    for flow in configured.flows:
        if flow.flow == wanted:
            name = dag_id(wanted)
            dag = _as_seen(dag_states({name: DAG_RUNS})[name], may_read(user, name, RUN))
            dag = with_retries(user, {name: dag})[name]
            return _opened(office, configured, flow, office.reader.status(str(wanted)), dag, user)
    why = visible_file(configured, user).lacks(wanted)
    raise HTTPException(status.HTTP_404_NOT_FOUND, f"Flow {wanted} is not there: {why}")


FlowDep = Annotated[OpenFlow, Depends(open_flow)]


def with_runs(open_flow: OpenFlow, runs: Collection[str]) -> OpenFlow:
    """Return a flow whose DAG has these runs, too, if Airflow still has them and the user may see them."""
    return replace(open_flow, dag=with_older(open_flow.dag_id, open_flow.dag, runs))


def with_failures(open_flow: OpenFlow) -> OpenFlow:
    """Return a flow whose DAG has its newest failed runs, too, as far as the user may see them."""
    return replace(open_flow, dag=with_failed(open_flow.dag_id, open_flow.dag))


def flow_of_dag(configured: Configured, dag: str) -> Flow | None:
    """Return the flow that a DAG belongs to; None when it is none of Ferry's."""
    for config in configured.flows:
        if dag == dag_id(config.flow) or dag in other_dags(config.flow):
            return config.flow
    return None
