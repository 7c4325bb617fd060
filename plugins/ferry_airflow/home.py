"""A local Airflow's home: its folders, its login, and the settings that its processes get by their environment."""

from __future__ import annotations

import base64
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferry.files import write_whole
from ferry.ports import LOOPBACK, free_ports
from ferry.run.spark.submit import ARCHIVE_FOLDER, ARCHIVE_VARIABLE

USER = "admin"
STATE_FILE = "ferry.json"
PASSWORD_FILE = "password"
SECRET_FILE = "jwt-secret"
FERNET_FILE = "fernet-key"
SECRET_BYTES = 32
PASSWORD_BYTES = 18
LOCAL_SETTINGS = '''\
"""What each task imports is imported before the scheduler forks: that is five sixths of what a short task takes."""

import sys

__all__ = ()

if sys.argv[1:2] in (["scheduler"], ["dag-processor"]):
    import airflow.sdk.execution_time.task_runner
    import ferry_airflow.dags
    import ferry_airflow.drilling
    import ferry_airflow.steps
    import ferry_airflow.switching
    import ferry_airflow.window_steps
'''
"""Airflow imports it when one of its processes begins (`airflow_local_settings`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHome:
    """A prepared home; `environment` holds its secret and is for its processes only."""

    path: Path
    port: int
    environment: Mapping[str, str] = field(repr=False)
    password: str = field(repr=False)
    """The password of USER."""

    @property
    def url(self) -> str:
        """The address of the user interface and the REST API."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def log_folder(self) -> Path:
        """The folder to which the processes write their own output."""
        return self.path / "processes"


def prepare(path: Path, *, config: Path | None = None, dags: Path | None = None) -> LocalHome:
    """Make `path` the home of a local Airflow, or find it again with its port, password and secrets.

    Only this user can open the home: it holds the database, logs and keys. `config` becomes FERRY_CONFIG of all its
    processes; `dags` is the folder of DAG files, that of the checkout by default. The database is not touched.
    """
    path = path.resolve()
    root = Path(__file__).resolve().parents[2]
    (path / "processes").mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    (path / "config").mkdir(exist_ok=True)
    (path / "config" / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
    password = _kept(path / PASSWORD_FILE, lambda: secrets.token_urlsafe(PASSWORD_BYTES))
    passwords = path / "passwords.json"
    _write_private(passwords, json.dumps({USER: password}))
    port = _port(path / STATE_FILE)
    environment = {
        "AIRFLOW_HOME": str(path),
        "AIRFLOW__CORE__DAGS_FOLDER": str((dags or root / "dags").resolve()),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(root / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
        # Without a key, Airflow stores the passwords of connections in its database unencrypted.
        "AIRFLOW__CORE__FERNET_KEY": _kept(path / FERNET_FILE, _fernet_key),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{path}/airflow.db",
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://{LOOPBACK}:{port}",
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": _kept(path / SECRET_FILE, lambda: secrets.token_hex(SECRET_BYTES)),
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(path / "logs"),
        ARCHIVE_VARIABLE: os.environ.get(ARCHIVE_VARIABLE) or str(root / ARCHIVE_FOLDER),
        # spark-submit and the four processes themselves are found by name.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    if config is not None:
        environment["FERRY_CONFIG"] = str(config.resolve())
    return LocalHome(path=path, port=port, environment=environment, password=password)


def _port(state: Path) -> int:
    if state.exists():
        return int(json.loads(state.read_text())["port"])
    port = free_ports(1)[0]
    state.write_text(json.dumps({"port": port}))
    return port


def _kept(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in the file, which is made when there is none."""
    if not path.exists():
        _write_private(path, make())
    return path.read_text()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only this user may read, even if it existed with other rights."""
    write_whole(path, text)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
