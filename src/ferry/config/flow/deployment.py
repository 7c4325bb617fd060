"""The deployment of a run: `ferry.deployment`, else FERRY_DEPLOYMENT, else where the file is used from.

A deployment is one file and all that runs with it, on one machine or many. Two deployments on one lane with different
files would each undo the other's work; `ferry.ledger.deployments` refuses that.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ferry.config.keys import values
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.model import located

DEPLOYMENT_VARIABLE = "FERRY_DEPLOYMENT"

_EXECUTION_PATH = "/execution"


def deployment_id(given: str, environment: Mapping[str, str], default: str) -> str:
    """Return the id: the file's, else the variable's, else `default`.

    Raises BadInput for a variable that holds no name.
    """
    text = environment.get(DEPLOYMENT_VARIABLE, "").strip()
    if given or not text:
        return given or default
    try:
        return values.name(text)
    except BadValue as error:
        raise BadInput(located(DEPLOYMENT_VARIABLE, error.message)) from None


def of_file(path: Path) -> str:
    """Return the default on a command line: this host and the file's real path. A byte that is not UTF-8 is escaped."""
    return f"{socket.gethostname()}:{os.fsencode(path.resolve()).decode(errors='backslashreplace')}"


def of_airflow(base_url: str, execution_url: str) -> str:
    """Return the default in Airflow: the address of its API server, which all of its workers have and no others.

    It is the first of `[api] base_url` and `[core] execution_api_server_url` that leads to another host. So the id
    stays the same whatever the workers' host names are. If all addresses are loopback, Airflow is on this one host, and
    its name is added.
    """
    places = [_place(base_url), _place(execution_url)]
    for place in places:
        if place is not None and not _is_loopback(place):
            return f"airflow:{place}"
    near = next((place for place in places if place is not None), "localhost:8080")
    return f"airflow:{near}@{socket.gethostname()}"


def _place(url: str) -> str | None:
    """Return host, port and path of a URL, without a login that it may hold."""
    parts = urlsplit(url.strip())
    if not parts.hostname:
        return None
    path = parts.path.rstrip("/").removesuffix(_EXECUTION_PATH)
    return f"{parts.netloc.rpartition('@')[2].lower()}{path}"


def _is_loopback(place: str) -> bool:
    host = urlsplit(f"//{place}").hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified
