"""Airflow connections that the environment of this process holds (`AIRFLOW_CONN_{ID}`)."""

from __future__ import annotations

import json
import os

from ferry.config.login.connection import TYPE, AirflowConnection, connection_properties
from ferry.config.login.unknown import VARIABLE
from ferry.config.text.secrets import ClientProperties
from ferry.errors import MALFORMED, BadInput


def from_environment(conn_id: str) -> ClientProperties | None:
    """Return the settings of the connection that the environment holds as JSON (`AIRFLOW_CONN_{ID}`), if it holds one.

    Raises BadInput when the variable is not a JSON object, or `connection_properties` refuses it.
    """
    name = VARIABLE.format(conn_id.upper())
    text = os.environ.get(name)
    if not text:
        return None
    try:
        fields = json.loads(text)
        extra = fields.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
        texts = {name: fields.get(name) for name in ("host", "login", "password")}
        if not all(text is None or isinstance(text, str) for text in texts.values()):
            raise TypeError("a field is not text")
        connection = AirflowConnection(
            conn_id=conn_id,
            conn_type=str(fields.get("conn_type")),
            port=int(fields["port"]) if fields.get("port") else None,
            extra=dict(extra),
            **texts,
        )
    except MALFORMED:
        raise BadInput(
            f"{name} is not a connection in JSON; write {{"
            f'"conn_type": "{TYPE}", "host": "broker:9092", "login": ..., "password": ..., "extra": {{...}}}}'
        ) from None
    return connection_properties(connection)
