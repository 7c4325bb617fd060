"""Who may see and do what: Airflow's own permissions on the DAGs of a flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, status

from ferry.model import Flow
from ferry_airflow.naming import backfill_dag_id, dag_id, drill_dag_id, verify_dag_id

User = Annotated[BaseUser, Depends(get_user)]
"""Whoever is signed in: 401 when nobody is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What somebody may do with a flow: the buttons that are shown, and the requests that are not refused."""

    run: bool
    """Start a run of the flow's DAG, and plan one."""
    pause: bool
    """Change the flow's DAG: hold the flow or a topic back."""
    verify: bool
    backfill: bool
    drill: bool


def may(user: BaseUser, dag: str, method: ResourceMethod, entity: DagAccessEntity | None = None) -> bool:
    """Whether Airflow lets somebody at a DAG, or at its runs."""
    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag))
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)


def may_see_dag(user: BaseUser, dag: str) -> bool:
    """Whether Airflow shows somebody a DAG."""
    return may(user, dag, "GET")


def may_see_faults(user: BaseUser) -> bool:
    """Whether somebody may know what is wrong with files: who may see Airflow's import errors."""
    return get_auth_manager().is_authorized_view(access_view=AccessView.IMPORT_ERRORS, user=user)


def may_see(user: BaseUser, flow: Flow) -> bool:
    """Whether somebody may see a flow: who may see its DAG."""
    return may_see_dag(user, dag_id(flow))


def may_read(user: BaseUser, dag: str, *entities: DagAccessEntity) -> bool:
    """Whether somebody may see a DAG with its runs, their tasks, or whatever else is named of it."""
    return may(user, dag, "GET") and all(may(user, dag, "GET", entity) for entity in entities)


def rights_of(user: BaseUser, flow: Flow) -> Rights:
    """What somebody may do with a flow."""
    own = dag_id(flow)
    return Rights(
        run=may(user, own, "POST", DagAccessEntity.RUN),
        pause=may(user, own, "PUT"),
        verify=may(user, verify_dag_id(flow), "POST", DagAccessEntity.RUN),
        backfill=may(user, backfill_dag_id(flow), "POST", DagAccessEntity.RUN),
        drill=may(user, drill_dag_id(flow), "POST", DagAccessEntity.RUN),
    )


def refuse(allowed: bool, what: str) -> None:
    """403 unless it is allowed."""
    if not allowed:
        raise HTTPException(status.HTTP_403_FORBIDDEN, f"Airflow does not let you {what}: ask for that permission")
