"""A cluster's settings from its Airflow connection, and a flow of the file with the connections of its clusters."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError, AirflowSecretsBackendAccessDenied

from ferry.config.flow.flow import FlowConfig
from ferry.config.login.connection import SERVERS, AirflowConnection, connection_properties, connection_servers
from ferry.config.settings import Settings, load
from ferry.config.text.secrets import ClientProperties
from ferry.errors import BadInput, Refused, Retryable
from ferry_airflow.deployment import airflow_deployment


def connection_of(conn_id: str) -> Any:
    """Return an Airflow connection; None if Airflow finds none of that name.

    Raises Refused if Airflow denies access to it, and Retryable for Airflow's other errors, both with Airflow's text.
    """
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None
    except AirflowSecretsBackendAccessDenied as error:
        raise Refused(f"Airflow denies access to connection {conn_id!r} ({error}): grant it, or name another") from None
    except AirflowRuntimeError as error:
        raise Retryable(f"Airflow did not return connection {conn_id!r} ({error}): try again") from None


def settings_of(conn_id: str) -> ClientProperties:
    """Return the settings of a connection by Java's names.

    Raises BadInput when it is missing or wrong, and what `connection_of` raises.
    """
    return connection_properties(_kafka_connection(conn_id))


def _kafka_connection(conn_id: str) -> AirflowConnection:
    found = connection_of(conn_id)
    if found is None:
        raise BadInput(
            f"Airflow connection {conn_id!r} does not exist: create it with the type Kafka cluster, or name another in"
            " ferry.airflow.conn.id"
        )
    return AirflowConnection(
        conn_id=conn_id,
        conn_type=str(found.conn_type),
        host=found.host,
        port=found.port,
        login=found.login,
        password=found.password,
        extra=found.extra_dejson,
    )


def flow_of_names(path: Path, name: str) -> FlowConfig:
    """Return the flow `source->target` of the file at `path`, to name assets of its target while a DAG is parsed.

    Of connections only the servers of the target's are read, if the file names one there. Raises BadInput for a mistake
    in the file, or if that connection is missing or names no servers, and what `connection_of` raises.
    """
    found = load(path).flow(name)
    own = found.clients.connections.get(found.flow.target)
    if own is None:
        return found
    servers = connection_servers(_kafka_connection(own))
    return load(path, lambda conn_id: {SERVERS: servers} if conn_id == own else None).flow(name)


def flow_of(path: Path, name: str) -> FlowConfig:
    """Return the flow `source->target` of the file at `path`.

    Raises BadInput for a mistake in the file or in one of its connections, and what `connection_of` raises.
    """
    return settings_for(path, name).flow(name)


def settings_for(path: Path, name: str) -> Settings:
    """Return the file at `path`, with the connections of the clusters of the flow `source->target` read, no others.

    Raises BadInput for a mistake in the file or in one of the connections, and what `connection_of` raises.
    """
    client = logging.getLogger("kafka")
    if client.getEffectiveLevel() < logging.WARNING:
        client.setLevel(logging.WARNING)  # it logs every connection at INFO
    deployment = airflow_deployment()
    settings = load(path, deployment=deployment)
    flow = settings.flow(name)
    if not flow.clients.connections:
        return settings
    names = frozenset(flow.clients.connections.values())

    def lookup(conn_id: str) -> Mapping[str, str] | None:
        return settings_of(conn_id) if conn_id in names else None

    return load(path, lookup, deployment=deployment)
