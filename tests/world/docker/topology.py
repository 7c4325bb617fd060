"""The services of compose.yaml as processes of this machine: their commands, environments, checks and files.

What differs from containers is written here and nowhere else: an address `service:port` becomes one of 127.0.0.1, a
path of a container one below the test's folder. A process gets the environment of its image and of its service, and
nothing of ours but what finds Java and the code under test. No service of ours is root: where the tests are, they are
Debian's nobody.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ferry.dev import ClusterSpec, RunningCluster, guard, up_all
from ferry.dev.spec import PLAINTEXT, Listener
from ferry.ports import free_ports
from ferry_airflow.home import LocalHome
from tests.postgres import postgres_program
from tests.spark.jobs import as_
from tests.spark.jobs import service as process
from tests.tiers import PATIENCE
from tests.world.docker.stack import DOCKER, ROOT, image_environment, properties, secrets_of, services

BIN = Path(sys.executable).parent
POISON = """raise ImportError("this is a worker's own Ferry: the job's has to come first")\n"""
CONTAINER_PORTS = {
    "postgres": ("5432",),
    "spark-master": ("7077", "8080"),
    "spark-worker-1": ("8081",),
    "spark-worker-2": ("8081",),
    "airflow-api-server": ("8080",),
    "airflow-scheduler": ("8974",),
}
LOCAL_ADDRESSES = {"localhost:8080": "airflow-api-server:8080"}
"""What AIRFLOW_BASE_URL of .env.example names."""
OF_THE_TOPOLOGY = {
    *("process.roles", "node.id", "controller.quorum.voters", "controller.listener.names", "listeners"),
    *("advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name", "log.dirs"),
}
"""Settings of a broker that say where it is, which `ferry.dev` chooses."""
AIRFLOW = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")
SPARK = ("spark-master", "spark-worker-1", "spark-worker-2")
NOBODY = "nobody"
HEALTHY_SECONDS = 150.0 * PATIENCE
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The running services."""

    folder: Path
    primary: RunningCluster
    backup: RunningCluster
    addresses: Mapping[str, str]
    """`service:port` of a container: where that is here."""
    metrics: Mapping[str, str]
    """Settings of Airflow beside those of compose.yaml: who hears its metrics."""
    user: str | None
    """Whose the processes are; None: of who runs the tests."""
    programs: Path
    """Where that user finds the programs of this environment."""

    @property
    def airflow(self) -> LocalHome:
        """Where Airflow's API answers."""
        port = int(self.addresses["airflow-api-server:8080"].rpartition(":")[2])
        password = json.loads(self.secret("airflow_passwords"))["admin"]
        return LocalHome(path=self.folder, port=port, environment={}, password=password)

    @property
    def flows(self) -> Path:
        """The configuration file."""
        return self.folder / "flows.properties"

    def secret(self, name: str) -> str:
        """A secret's text."""
        return (self.folder / "secrets" / name).read_text().strip()

    def native(self, name: str, text: str) -> str:
        """A text of the service's, with the addresses and the paths of this machine."""
        for container, other in LOCAL_ADDRESSES.items():
            text = text.replace(container, other)
        for container, here in self.addresses.items():
            text = text.replace(container, here)
        for container, here in self.addresses.items():
            host, _, port = container.partition(":")
            text = re.sub(rf"(?<![\w./-]){host}(?![\w:/-])", "127.0.0.1", text)
            if host == name:
                text = re.sub(rf"(?<![\w.:-]){port}(?!\w)", here.rpartition(":")[2], text)
        for container, place in self._places(name).items():
            text = re.sub(rf"{container}(?=[/\s:;\"']|$)", str(place), text)
        return text

    def environment(self, name: str) -> dict[str, str]:
        """The environment of a service of ours: its image's and its own."""
        service = services()[name]
        own = image_environment(service["image"].removeprefix("ferry-").partition(":")[0])
        own |= {key: str(value) for key, value in (service.get("environment") or {}).items()}
        return {
            **{key: self.native(name, value) for key, value in own.items()},
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._made("home", name)),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": self._poison() if name in SPARK else os.environ.get("PYTHONPATH", ""),
            **{key: os.environ[key] for key in ("JAVA_HOME", "LANG") if key in os.environ},
            **(self.metrics if name in AIRFLOW else {}),
        }  # fmt: skip

    def command(self, name: str) -> list[str]:
        """What a service of ours is started with."""
        return [self.native(name, word) for word in services()[name]["command"]]

    def work(self, name: str) -> Path:
        """The folder in which it is started."""
        return self._made("work", name)

    def check(self, name: str) -> subprocess.CompletedProcess[str]:
        """One call of the service's health check."""
        test = services()[name]["healthcheck"]["test"][1:]
        if name.startswith("kafka-"):
            cluster = self.primary if name == "kafka-primary" else self.backup
            libs = str(ROOT / ".kafka" / cluster.spec.version / "*")
            test = ["java", "-cp", libs, "org.apache.kafka.tools.BrokerApiVersionsCommand", test[1], cluster.bootstrap]
        else:
            test = [self.native(name, word) for word in test]
        environment = {**os.environ} if name.startswith(("kafka-", "postgres")) else self.environment(name)
        own = as_(self.user)
        return subprocess.run(test, check=False, capture_output=True, text=True, env=environment, **own)

    def wait_healthy(self, *names: str) -> None:
        """Wait until each of these services' health check passes."""
        deadline = time.monotonic() + HEALTHY_SECONDS
        for name in names:
            while (answer := self.check(name)).returncode:
                log = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                assert time.monotonic() < deadline, f"{name} is not well: {answer.stdout}{answer.stderr}\n{log}"
                time.sleep(POLL_SECONDS)

    def _places(self, name: str) -> dict[str, Path]:
        granted = "spark_defaults" in secrets_of(services()[name])
        return {
            "/run/secrets": self.folder / "secrets",
            "/opt/ferry/spark-conf": self.folder / "spark-conf" if granted else self._made("no-spark-conf", name),
            "/opt/ferry/flows.properties": self.flows,
            "/opt/ferry/dags": ROOT / "dags",
            "/opt/airflow/logs": self._made("logs", "shared"),
            "/opt/airflow": self._made("airflow", name),
            "/opt/spark-work": self._made("work", name),
            "/var/lib/ferry": self._made("ferry", "shared"),
        }

    def _made(self, *parts: str) -> Path:
        folder = self.folder.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        for path in (folder, *folder.parents):
            if path == self.folder:
                break
            _give(path, self.user)
        return folder

    def _poison(self) -> str:
        """A folder with a Ferry that cannot be imported: what tasks run has to come with the job."""
        folder = self._made("poison")
        (self._made("poison", "ferry") / "__init__.py").write_text(POISON)
        return str(folder)


@contextmanager
def running(metrics: Mapping[str, str]) -> Iterator[Stack]:
    """Start all services of compose.yaml, each when those that it needs are well; all end with the block."""
    # Not below pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory(prefix="ferry-topology-") as folder, _running(Path(folder), metrics) as found:
        yield found


def somebody() -> str | None:
    """Who services are where the tests are root; None where they are not."""
    return None if os.getuid() else NOBODY


def programs(folder: Path, user: str | None) -> Path:
    """The folder with the programs of this environment, as a user may start them who cannot enter that of its Python.

    Then they run by Debian's Python of the same version, to which this environment's libraries are lent.
    """
    if user is None or _tried(sys.executable, user):
        return BIN
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = shutil.which(version, path="/usr/bin")
    assert python, f"{user} may not use {sys.executable}, and Debian's {version} is missing"
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    libraries = sysconfig.get_path("purelib")
    lent = folder / "lib" / version / "site-packages" / "lent.pth"
    lent.write_text(f"import site; site.addsitedir({libraries!r})\n")
    for program in BIN.iterdir():
        text = program.read_bytes() if program.is_file() and not program.is_symlink() else b""
        if text.startswith(b"#!"):
            own = text.replace(f"#!{BIN}/python".encode(), f"#!{folder}/bin/python".encode(), 1)
            made = folder / "bin" / program.name
            made.write_bytes(own)
            made.chmod(0o755)
    return folder / "bin"


def _tried(program: str, user: str) -> bool:
    try:
        return not subprocess.run([program, "-c", ""], check=False, cwd="/", **as_(user)).returncode
    except PermissionError:
        return False


@contextmanager
def _running(folder: Path, metrics: Mapping[str, str]) -> Iterator[Stack]:
    user = somebody()
    folder.chmod(0o755)
    subprocess.run([DOCKER / "secrets.sh", folder / "secrets"], check=True, capture_output=True)
    _give(folder / "secrets", user)  # a container's secrets are files that it may read, in a folder that it may enter
    (folder / "spark-conf").mkdir()
    shutil.copy(folder / "secrets" / "spark_defaults", folder / "spark-conf" / "spark-defaults.conf")
    wanted = [f"{host}:{port}" for host, ports in CONTAINER_PORTS.items() for port in ports]
    addresses = dict(zip(wanted, (f"127.0.0.1:{port}" for port in free_ports(len(wanted))), strict=True))
    with ExitStack() as stack:
        stack.enter_context(guard(folder / "kafka"))
        primary, backup = up_all([_broker(folder, side) for side in ("primary", "backup")], home=folder / "kafka")
        kafka = {f"kafka-{each.name}:9092": each.bootstrap_of("CLIENT") for each in (primary, backup)}
        found = Stack(
            folder=folder,
            primary=primary,
            backup=backup,
            addresses={**addresses, **kafka},
            metrics=metrics,
            user=user,
            programs=programs(folder / "python", user),
        )
        _localise(found)
        _start(stack, found, "spark-master")
        stack.enter_context(_postgres(found))
        found.wait_healthy("spark-master")
        for name in SPARK[1:]:
            _start(stack, found, name)
        _run_once(found, "airflow-init")
        for name in AIRFLOW:
            _start(stack, found, name)
        yield found


def _give(path: Path, user: str | None) -> None:
    if user is not None:
        owner = pwd.getpwnam(user)
        os.chown(path, owner.pw_uid, owner.pw_gid)


def _start(stack: ExitStack, found: Stack, name: str) -> None:
    log = found.folder / f"{name}.log"
    environment, work = found.environment(name), found.work(name)
    stack.enter_context(process(found.command(name), log, environment=environment, cwd=work, user=found.user))


def _run_once(found: Stack, name: str) -> None:
    done = subprocess.run(
        found.command(name),
        check=False,
        capture_output=True,
        text=True,
        env=found.environment(name),
        cwd=found.work(name),
        timeout=HEALTHY_SECONDS,
        **as_(found.user),
    )
    (found.folder / f"{name}.log").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


def _localise(found: Stack) -> None:
    """Put this machine's addresses and paths into the mounted files, and no schedule: only the test starts the flow."""
    database = found.folder / "secrets" / "airflow_database"
    text = found.native("airflow-scheduler", database.read_text())
    database.unlink()
    database.write_text(text)
    flows = found.native("airflow-scheduler", (DOCKER / "flows.properties").read_text())
    flows, times = re.subn(r"(ferry\.schedule) = .*", r"\1 = none", flows)
    assert times == 1
    found.flows.write_text(flows)


def _broker(folder: Path, side: str) -> ClusterSpec:
    text = (DOCKER / "kafka" / f"{side}.properties").read_text().replace("/run/secrets", str(folder / "secrets"))
    settings = {key: value for key, value in properties(text).items() if key not in OF_THE_TOPOLOGY}
    listeners = (PLAINTEXT, Listener(name="CLIENT", protocol="SASL_PLAINTEXT"))
    return ClusterSpec(name=side, listeners=listeners, properties=settings)


@contextmanager
def _postgres(found: Stack) -> Iterator[None]:
    """Debian's Postgres with what its image would make of the service's environment; root may not start one."""
    environment = services()["postgres"]["environment"]
    port = found.addresses["postgres:5432"].rpartition(":")[2]
    user = None if found.user is None else "postgres"
    with tempfile.TemporaryDirectory(prefix="ferry-postgres-") as home:
        password = Path(home) / "password"
        password.write_text(Path(found.native("postgres", environment["POSTGRES_PASSWORD_FILE"])).read_text())
        if user:
            for path in (Path(home), password):
                os.chown(path, pwd.getpwnam(user).pw_uid, -1)
        data = f"{home}/data"
        name = environment["POSTGRES_USER"]
        made = [f"--username={name}", f"--pwfile={password}", *environment["POSTGRES_INITDB_ARGS"].split()]
        _as(user, [postgres_program("initdb"), f"--pgdata={data}", "--encoding=UTF8", "--no-sync", *made], home)
        server = [
            postgres_program("postgres"),
            "-D",
            data,
            "-h",
            "127.0.0.1",
            "-p",
            port,
            "-k",
            home,
            "-c",
            "fsync=off",
        ]
        log = found.folder / "postgres.log"
        with process(server, log, environment={"PATH": os.environ["PATH"]}, cwd=Path(home), user=user):
            found.wait_healthy("postgres")
            create = ["-h", home, "-p", port, "-U", name, environment["POSTGRES_DB"]]
            _as(user, [postgres_program("createdb"), *create], home)
            yield


def _as(user: str | None, command: Sequence[str], folder: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, **as_(user))
    assert done.returncode == 0, done.stdout + done.stderr
