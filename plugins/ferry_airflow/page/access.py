"""Who may see and do what: Airflow's own permissions on the DAGs of a flow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.batch_apis import IsAuthorizedDagRequest
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, status

from ferry.model import Flow
from ferry_airflow.naming import (
    VERBS,
    backfill_dag_id,
    dag_id,
    drill_dag_id,
    groups_dag_id,
    other_dags,
    switch_dag_id,
    verify_dag_id,
)

User = Annotated[BaseUser, Depends(get_user)]
"""The signed-in user; 401 without one."""
RECORDS = "Ferry Records"
"""The resource of the permission to see records, for Airflow's auth manager: a custom view."""
RUN, TASKS, XCOMS = DagAccessEntity.RUN, DagAccessEntity.TASK_INSTANCE, DagAccessEntity.XCOM


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What a user may do with a flow: the buttons that are shown, and the requests that are not refused."""

    run: bool
    """Start a run of the flow's DAG, and plan one."""
    pause: bool
    """Change the flow's DAG: pause the flow or a topic."""
    verify: bool
    groups: bool
    """Start a sync of consumer groups."""
    backfill: bool
    drill: bool
    switch: tuple[str, ...]
    """The verbs of the switches that the user may start."""
    clear: bool
    """Clear tasks of the flow's DAG."""
    records: bool
    """See records, of all flows whose file shows them."""


NO_RIGHTS = Rights(
    run=False,
    pause=False,
    verify=False,
    groups=False,
    backfill=False,
    drill=False,
    switch=(),
    clear=False,
    records=False,
)
"""For a page without buttons, for which Airflow is not asked."""


def teams_of(dags: Iterable[str]) -> dict[str, str | None]:
    """Return the teams that some DAGs belong to, if Airflow has several; in one query, however many there are."""
    return DagModel.get_dag_id_to_team_name_mapping(list(dags))


def may(user: BaseUser, dag: str, method: ResourceMethod, entity: DagAccessEntity | None = None) -> bool:
    """Return whether a user has access to a DAG, or to its runs."""
    return _may(user, dag, teams_of([dag]), method, entity)


def _may(
    user: BaseUser,
    dag: str,
    teams: Mapping[str, str | None],
    method: ResourceMethod,
    entity: DagAccessEntity | None = None,
) -> bool:
    details = _details(dag, teams)
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)


def _details(dag: str, teams: Mapping[str, str | None]) -> DagDetails:
    return DagDetails(id=dag, team_name=teams.get(dag))


def may_see_dag(user: BaseUser, dag: str) -> bool:
    """Return whether Airflow shows a DAG to a user."""
    return may(user, dag, "GET")


def may_see_faults(user: BaseUser) -> bool:
    """Return whether a user may see what is wrong with files: who may see Airflow's import errors."""
    return get_auth_manager().is_authorized_view(access_view=AccessView.IMPORT_ERRORS, user=user)


def may_see(user: BaseUser, flow: Flow) -> bool:
    """Return whether a user may see a flow: who may see its DAG."""
    return may_see_dag(user, dag_id(flow))


def seen_by(user: BaseUser, flows: Iterable[Flow]) -> dict[Flow, bool]:
    """Return those of many flows that a user may see; each with whether its runs in Airflow may be seen, too.

    Each team's flows take one question, and so do all runs for a user who may see them all.
    """
    by_dag = {dag_id(flow): flow for flow in flows}
    teams = teams_of(by_dag)
    by_team: dict[str | None, set[str]] = {}
    for dag in by_dag:
        by_team.setdefault(teams.get(dag), set()).add(dag)
    ask = get_auth_manager().filter_authorized_dag_ids
    found = [ask(dag_ids=dags, user=user, method="GET", team_name=team) for team, dags in by_team.items()]
    seen: set[str] = set().union(*found)
    runs = [IsAuthorizedDagRequest(method="GET", access_entity=RUN, details=_details(dag, teams)) for dag in seen]
    all_runs = bool(runs) and get_auth_manager().batch_is_authorized_dag(runs, user=user)
    return {by_dag[dag]: all_runs or _may(user, dag, teams, "GET", RUN) for dag in seen}


def may_read(user: BaseUser, dag: str, *entities: DagAccessEntity) -> bool:
    """Return whether a user may see a DAG with its runs, their tasks, or any other named part of it."""
    teams = teams_of([dag])
    return all(_may(user, dag, teams, "GET", entity) for entity in (None, *entities))


def may_read_of(user: BaseUser, dags: Iterable[str], entity: DagAccessEntity) -> set[str]:
    """Return those of many DAGs of which a user may read a part; one question if the user may read it of all."""
    wanted = list(dags)
    if not wanted:
        return set()
    teams = teams_of(wanted)
    asked = [IsAuthorizedDagRequest(method="GET", access_entity=entity, details=_details(dag, teams)) for dag in wanted]
    if get_auth_manager().batch_is_authorized_dag(asked, user=user):
        return set(wanted)
    return {dag for dag in wanted if _may(user, dag, teams, "GET", entity)}


def rights_of(user: BaseUser, flow: Flow) -> Rights:
    """Return what a user may do with a flow."""
    own, verify, backfill, drill = dag_id(flow), verify_dag_id(flow), backfill_dag_id(flow), drill_dag_id(flow)
    teams = teams_of((own, *other_dags(flow)))
    return Rights(
        run=_may(user, own, teams, "POST", RUN),
        pause=_may(user, own, teams, "PUT"),
        verify=_may(user, verify, teams, "POST", RUN),
        groups=_may(user, groups_dag_id(flow), teams, "POST", RUN),
        backfill=_may(user, backfill, teams, "POST", RUN),
        drill=_may(user, drill, teams, "POST", RUN),
        switch=tuple(verb for verb in VERBS if _may(user, switch_dag_id(verb, flow), teams, "POST", RUN)),
        clear=_may(user, own, teams, "PUT", TASKS),
        records=may_see_records(user),
    )


def may_see_records(user: BaseUser) -> bool:
    """Return whether a user may see what applications wrote: who may read the custom view RECORDS in Airflow.

    SimpleAuthManager has no permissions, and lets every user read custom views. There it takes a role that may read
    connections: op or admin.
    """
    manager = get_auth_manager()
    if isinstance(manager, SimpleAuthManager):
        return manager.is_authorized_connection(method="GET", user=user)  # type: ignore[arg-type]
    return manager.is_authorized_custom_view(method="GET", resource_name=RECORDS, user=user)


def may_clear(user: BaseUser, dag: str) -> bool:
    """Return whether a user may clear tasks of a DAG."""
    return may(user, dag, "PUT", TASKS)


def refuse(allowed: bool, what: str) -> None:
    """Raise 403 unless it is allowed."""
    if not allowed:
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"Airflow does not let you {what}: ask for that permission")
