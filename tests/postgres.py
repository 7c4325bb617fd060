"""Debian's PostgreSQL as a process of a test: root may not start it, so that it has a user of its own then."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.commands import installed
from tests.harness import wait_until
from tests.spark.jobs import all_gone, as_
from tests.tiers import PATIENCE

READY_SECONDS = 60
"""Until a server that was stopped at once has read its log again."""


def postgres_program(name: str) -> str:
    """A program of PostgreSQL's server, which Debian keeps out of PATH."""
    folders = [os.environ.get("PATH", ""), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))]
    return installed(name, "postgresql", path=os.pathsep.join(folders))


@dataclass(kw_only=True)
class Postgres:
    """A server on 127.0.0.1 with one database, `airflow` of the user `airflow`; it may be stopped and started."""

    home: Path
    port: int
    user: str | None
    """The user of its processes; None: this one."""
    _server: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The database, as SQLAlchemy names it."""
        return f"postgresql+psycopg2://airflow@127.0.0.1:{self.port}/airflow"

    def create(self) -> None:
        """Create the server's files, start it and make the database."""
        made = [f"--pgdata={self.home}/data", "--username=airflow", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        self._run("initdb", *made)
        self.start()
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "airflow", "airflow")

    def start(self) -> None:
        """Start the server, unless it runs, and wait until it takes connections."""
        if self._server is not None and self._server.poll() is None:
            return
        where = ["-D", f"{self.home}/data", "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.home)]
        with (self.home / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                # It ends with this process, however that ends.
                ["setpriv", "--pdeathsig", "QUIT", postgres_program("postgres"), *where, "-c", "fsync=off"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                start_new_session=True,
                **as_(self.user),
            )
        wait_until(self._is_ready, "PostgreSQL that takes connections", READY_SECONDS)

    def stop(self) -> None:
        """Stop the server as `pg_ctl stop --mode immediate` does: it ends no session, and must read its log again."""
        server = self._server
        if server is None or server.poll() is not None:
            return
        every = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        server.send_signal(signal.SIGQUIT)
        server.wait(READY_SECONDS * PATIENCE)
        all_gone(every)

    def _is_ready(self) -> bool:
        command = [postgres_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0

    def _run(self, name: str, *arguments: str) -> None:
        command = [postgres_program(name), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=self.home, **as_(self.user))
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def postgres(port: int) -> Iterator[Postgres]:
    """A server with an empty database, until the block ends."""
    user = "postgres" if os.getuid() == 0 else None
    postgres_program("initdb")
    with tempfile.TemporaryDirectory(prefix="ferry-postgres-") as folder:
        if user is not None:
            try:
                owner = pwd.getpwnam(user)
            except KeyError:
                pytest.fail("there is no user postgres, and root may not start PostgreSQL: run `make prerequisites`")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        server = Postgres(home=Path(folder), port=port, user=user)
        try:
            server.create()
            yield server
        finally:
            server.stop()
