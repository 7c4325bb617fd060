"""What is in docker/ agrees with itself and with the project: nothing here needs a container engine."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from cryptography.fernet import Fernet

from ferry.config.settings import load
from ferry.dev import ClusterSpec
from tests.spark.jobs import as_
from tests.world.docker.stack import (
    DOCKER,
    EXAMPLE,
    ROOT,
    compose,
    compose_config,
    image_environment,
    lineage,
    mounts_of,
    properties,
    secrets_of,
    services,
    stages,
    words,
)
from tests.world.docker.topology import somebody
from tests.world.documents.commands import told

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
KAFKA_TOOLS = {"/opt/kafka/bin/kafka-broker-api-versions.sh": "org/apache/kafka/tools/BrokerApiVersionsCommand.class"}
"""What the scripts of Kafka that are called run."""
OF_OTHERS = {"kafka-primary": "appuser", "kafka-backup": "appuser", "postgres": "postgres"}
"""Services of foreign images, and the user that each image has for its process."""
NAMES = sorted(yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"])
"""All services; their tests are collected without Compose."""
OURS = sorted({*NAMES} - {*OF_OTHERS})
ONCE = "airflow-init"
IN_THE_IMAGES = {"bash", "install", "cat"}
"""Commands of Debian's essential packages."""
IMAGE = re.compile(r"[\w./-]+:(?!latest\b)[\w.-]+(@sha256:[0-9a-f]{64})?")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What secrets.sh makes."""
    folder = tmp_path_factory.mktemp("secrets") / "made"
    subprocess.run([DOCKER / "secrets.sh", folder], check=True, capture_output=True)
    return folder


def test_compose_takes_the_file_without_a_word() -> None:
    answer = compose_config("--quiet")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert compose_config("--profiles").stdout.split() == [], (
        "each service starts by itself: test others by their profile"
    )


def test_what_the_documents_tell_to_type_before_compose_makes_what_it_mounts(tmp_path: Path) -> None:
    """In a copy of the folder, for the lines write beside themselves; then Compose takes it."""
    folder = tmp_path / "docker"
    shutil.copytree(DOCKER, folder, ignore=shutil.ignore_patterns("secrets", ".env"))
    typed = shlex.join(told("cd", "docker").words), told("./secrets.sh").line, told("cp", ".env").line
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(typed)], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    answer = compose_config("--quiet", env=folder / ".env", project=folder)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    mounted = {Path(one["file"]) for one in compose()["secrets"].values()}
    assert {path.name for path in mounted} <= {path.name for path in (folder / "secrets").iterdir()}


def test_compose_refuses_a_file_that_is_wrong(tmp_path: Path) -> None:
    text = (DOCKER / "compose.yaml").read_text()
    (tmp_path / "compose.yaml").write_text(text.replace("healthcheck:", "healthchek:"))
    answer = compose_config("--quiet", project=tmp_path)
    assert answer.returncode != 0
    assert "healthchek" in answer.stderr


def test_the_example_of_variables_says_what_holds_without_it(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    example = properties(EXAMPLE.read_text())
    used = re.findall(r"\$\{(\w+):-([^}]*)\}", (DOCKER / "compose.yaml").read_text())
    assert {name: value for name, value in example.items() if name != "COMPOSE_PROJECT_NAME"} == dict(used)
    assert yaml.safe_load(compose_config(env=tmp_path / "empty").stdout)["services"] == services()


@pytest.mark.parametrize("name", NAMES)
def test_a_service_is_nobody_who_could_do_more_than_its_work(name: str) -> None:
    service = services()[name]
    assert service["user"] == OF_OTHERS.get(name, "ferry")
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert service["pids_limit"] == 4096
    for port in service.get("ports") or ():
        where = port if isinstance(port, str) else port.get("host_ip", "")
        assert where.startswith("127.0.0.1"), f"{name} is open to the network"


@pytest.mark.parametrize("name", NAMES)
def test_a_service_says_whether_it_is_well(name: str) -> None:
    service = services()[name]
    if name == ONCE:
        assert service["restart"] == "on-failure"
        return
    check = service["healthcheck"]
    assert check["test"][0] == "CMD"
    assert {"interval", "timeout", "retries", "start_period"} <= set(check)


def test_nothing_starts_before_what_it_needs() -> None:
    for name, service in services().items():
        needs = service.get("depends_on") or {}
        for needed, how in needs.items():
            expected = "service_completed_successfully" if needed == ONCE else "service_healthy"
            assert how["condition"] == expected, f"{name} needs {needed}"
        if name.startswith("airflow-") and name != ONCE:
            assert ONCE in needs
    assert set(services()[ONCE]["depends_on"]) == {"postgres"}
    assert {"kafka-primary", "kafka-backup", "spark-worker-1", "spark-worker-2"} <= set(
        services()["airflow-scheduler"]["depends_on"]
    )


def test_images_are_pinned() -> None:
    images = {service["image"] for service in services().values()} | {properties(EXAMPLE.read_text())["PYTHON_IMAGE"]}
    assert [image for image in sorted(images) if not IMAGE.fullmatch(image)] == []
    assert stages()[""] == [f"ARG PYTHON_IMAGE={properties(EXAMPLE.read_text())['PYTHON_IMAGE']}"]
    assert all(stage[0].split()[1] in ("${PYTHON_IMAGE}", *stages()) for name, stage in stages().items() if name)


def test_versions_are_those_that_are_tested() -> None:
    example = properties(EXAMPLE.read_text())
    kafka = ClusterSpec(name="any").version
    assert example["KAFKA_IMAGE"].startswith(f"apache/kafka:{kafka}")
    python = PROJECT["tool"]["mypy"]["python_version"]
    assert re.match(rf"python:{re.escape(python)}\.\d+-", example["PYTHON_IMAGE"])
    extras = [re.findall(r'\.whl\)\[([\w,]+)\]"', line) for stage in ("spark", "airflow") for line in stages()[stage]]
    named = [extra for found in extras for group in found for extra in group.split(",")]
    assert set(named) == {"airflow", "spark", "reports", "postgres"}
    assert set(named) <= set(PROJECT["project"]["optional-dependencies"])
    installs = [line for stage in stages() for line in stages()[stage] if "pip install" in line]
    assert len(installs) == 3
    assert all("constraints.txt" in line for line in installs), "a version that is not tested"


def test_the_dockerfile_copies_what_is_there() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = set()
    for name in stages():
        for line in stages()[name]:
            if line.startswith("COPY "):
                *sources, _ = line.split()[1:]
                copied |= set(sources)
            for stage in re.findall(r"from=(\w+)", line):
                assert stage in stages()
    assert [source for source in sorted(copied) if not (ROOT / source).exists()] == []
    assert kept == copied, "Dockerfile.dockerignore lets in what is copied"
    assert "*" in ignored
    built = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert {Path(path).parts[0] for path in built} <= copied, "the wheel is built of what is copied"


def test_the_wheel_is_built_of_no_more_than_what_is_copied(tmp_path: Path) -> None:
    for line in stages()["wheel"]:
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                copied = tmp_path / source
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, copied, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    copied.parent.mkdir(exist_ok=True)
                    shutil.copy(ROOT / source, copied)
    (build,) = [line for line in stages()["wheel"] if "python -m build" in line]
    command = shlex.split(build.partition("&& ")[2])
    assert command[:3] == ["python", "-m", "build"]
    done = subprocess.run(
        [sys.executable, *("wheels" if word == "/wheels" else word for word in command[1:])],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "wheels").iterdir()
    names = zipfile.ZipFile(wheel).namelist()
    for package in (ROOT / "src" / "ferry", ROOT / "plugins" / "ferry_airflow"):
        assert {str(path.relative_to(package.parent)) for path in package.rglob("*.py")} <= set(names)
    assert {"ferry_airflow/page/templates/base.html", "ferry_airflow/page/static/ferry.js"} <= set(names)
    assert any(name.endswith("/share/man/man1/ferry.1") for name in names)


def test_debian_packages_of_the_images_are_those_of_the_tests() -> None:
    listed = (ROOT / "tools" / "debian-packages.txt").read_text().splitlines()
    known = {line.partition("#")[0].strip() for line in listed}
    [install] = [line for line in stages()["base"] if "apt-get install" in line]
    wanted = re.search(r"--no-install-recommends (.*?) &&", install)
    assert wanted is not None
    assert set(wanted[1].split()) <= known | {"procps"}


@pytest.mark.parametrize("name", OURS)
def test_commands_are_installed_and_folders_made(name: str) -> None:
    service = services()[name]
    stage = service["image"].removeprefix("ferry-").partition(":")[0]
    instructions = lineage(stage)
    assert instructions[-1] == f"USER {service['user']}"
    called = [service["command"][0]]
    if called == ["bash"]:
        called += re.findall(r"(?:^|&& )(?:exec )?([\w-]+)", service["command"][2])
    if "healthcheck" in service:
        called.append(service["healthcheck"]["test"][1])
    called += [
        str(value).split()[0] for key, value in (service.get("environment") or {}).items() if key.endswith("_CMD")
    ]
    for command in called:
        assert command in IN_THE_IMAGES or shutil.which(command, path=str(Path(sys.executable).parent)), command
    made = " ".join(instructions)
    for place in [*mounts_of(service), *(str(Path(target).parent) for target in secrets_of(service).values())]:
        folder = place if not place.endswith(".properties") else str(Path(place).parent)
        assert folder == "/run/secrets" or re.search(rf"{folder}(\s|$)", made), f"{folder} is not made in the image"


def test_kafka_has_what_is_called_in_it(kafka_jars: Path) -> None:
    for name in OF_OTHERS.keys() - {"postgres"}:
        command = services()[name]["healthcheck"]["test"][1]
        jar = next(kafka_jars.glob(f"kafka-tools-{ClusterSpec(name='any').version}.jar"))
        assert KAFKA_TOOLS[command] in zipfile.ZipFile(jar).namelist()


@pytest.fixture
def kafka_jars() -> Path:
    """Where `make setup` has put the jars of Kafka."""
    return ROOT / ".kafka" / ClusterSpec(name="any").version


def test_kafka_s_logins_are_where_they_are_needed() -> None:
    """The triggerer needs them for flows with `ferry.schedule.lag.*` alone; none of these has it."""
    assert "ferry.schedule.lag" not in (DOCKER / "flows.properties").read_text()
    holders = {name for name, one in services().items() if any(key.startswith("kafka_") for key in secrets_of(one))}
    assert not holders & {"airflow-triggerer", "postgres", "spark-master"}
    assert not any(name.startswith("spark") for name in holders), "they come with the tasks"


@pytest.mark.parametrize("side", ["primary", "backup"])
def test_a_broker_listens_where_it_is_looked_for(side: str) -> None:
    name = f"kafka-{side}"
    service = services()[name]
    settings = properties((DOCKER / "kafka" / f"{side}.properties").read_text())
    assert service["hostname"] == name
    assert mounts_of(service)["/mnt/shared/config/server.properties"] == str(DOCKER / "kafka" / f"{side}.properties")
    assert mounts_of(service)[settings["log.dirs"]] == name
    assert list(secrets_of(service)) == [f"kafka_{side}_password"]
    assert f"${{dir:/run/secrets:kafka_{side}_password}}" in settings["listener.name.client.plain.sasl.jaas.config"]
    listeners = dict(one.split("://") for one in settings["listeners"].split(","))
    advertised = dict(one.split("://") for one in settings["advertised.listeners"].split(","))
    assert advertised["CLIENT"] == f"{name}{listeners['CLIENT']}"
    assert advertised["INTERNAL"] == listeners["INTERNAL"] == service["healthcheck"]["test"][-1]
    assert settings["controller.quorum.voters"] == f"1@{listeners['CONTROLLER']}"
    flows = properties((DOCKER / "flows.properties").read_text())
    assert flows[f"{side}.bootstrap.servers"] == advertised["CLIENT"]
    assert flows[f"{side}.security.protocol"] == "SASL_PLAINTEXT"
    assert settings["listener.security.protocol.map"].startswith("CLIENT:SASL_PLAINTEXT")
    assert flows[f"{side}.sasl.mechanism"] == settings["listener.name.client.sasl.enabled.mechanisms"]


@pytest.mark.parametrize("side", ["primary", "backup"])
def test_kafkas_image_formats_a_brokers_storage_from_what_is_mounted(
    kafka_jars: Path, secrets: Path, side: str
) -> None:
    """What its entry point does first, by the class that it does it with, as somebody who is not root."""
    service = services()[f"kafka-{side}"]
    user = somebody()
    with tempfile.TemporaryDirectory(prefix="ferry-kafka-") as home:
        folders = {name: Path(home, name) for name in ("default", "mounted", "final", "data", "secrets")}
        shutil.copytree(secrets, folders["secrets"])
        text = (DOCKER / "kafka" / f"{side}.properties").read_text()
        for name, place in (("data", "/var/lib/kafka/data"), ("secrets", "/run/secrets")):
            text = text.replace(place, str(folders[name]))
        for path in (Path(home), *folders.values()):
            path.mkdir(exist_ok=True)
            if user:
                shutil.chown(path, user)
        (folders["mounted"] / "server.properties").write_text(text)
        environment = {"PATH": os.environ["PATH"], **{key: str(one) for key, one in service["environment"].items()}}
        setup = [word for name in ("default", "mounted", "final") for word in (f"--{name}-configs-dir", folders[name])]
        command = ["java", "-cp", f"{kafka_jars}/*", "kafka.docker.KafkaDockerWrapper", "setup", *setup]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, **as_(user))
        assert done.returncode == 0, done.stdout + done.stderr
        final = properties((folders["final"] / "server.properties").read_text())
        assert final == properties(text), "the environment adds nothing to the file"
        formatted = properties((folders["data"] / "meta.properties").read_text())
        assert (formatted["cluster.id"], formatted["node.id"]) == (environment["CLUSTER_ID"], final["node.id"])


def test_both_brokers_differ_by_their_names_only() -> None:
    primary, backup = ((DOCKER / "kafka" / f"{side}.properties").read_text() for side in ("primary", "backup"))
    assert primary.replace("primary", "backup") == backup
    clusters = [services()[f"kafka-{side}"]["environment"]["CLUSTER_ID"] for side in ("primary", "backup")]
    assert len(set(clusters)) == 2
    assert all(len(cluster) == 22 for cluster in clusters), "16 bytes in Base64"


def test_spark_and_airflow_are_where_they_are_looked_for() -> None:
    master = services()["spark-master"]
    place = master["command"][2:]
    host, port = place[place.index("--host") + 1], place[place.index("--port") + 1]
    assert host == master["hostname"]
    url = f"spark://{host}:{port}"
    workers = [service for name, service in services().items() if name.startswith("spark-worker-")]
    assert len(workers) == 2
    for worker in workers:
        assert worker["command"][-1] == url
        assert worker["command"][worker["command"].index("--host") + 1] == worker["hostname"]
    environment = services()["airflow-scheduler"]["environment"]
    assert json.loads(environment["AIRFLOW_CONN_SPARK_DEFAULT"]) == {"conn_type": "spark", "host": url}
    api = services()["airflow-api-server"]
    address = urlsplit(environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"])
    assert address.hostname == api["hostname"]
    assert f"airflow api-server --port {address.port}" in api["command"][2]
    for name, service in services().items():
        if name != ONCE:
            for found in re.findall(r"urlopen\('http://([\w-]+):(\d+)/", " ".join(words(service))):
                known = {"spark-master": "8080", "airflow-api-server": str(address.port), "airflow-scheduler": "8974"}
                assert found == (service["hostname"], known.get(name, "8081"))


def test_secrets_are_files_and_only_with_who_needs_them(secrets: Path) -> None:
    defined = {name: Path(one["file"]).name for name, one in compose()["secrets"].items()}
    assert set(defined.values()) == {path.name for path in secrets.iterdir()}
    granted = {name: secrets_of(service) for name, service in services().items()}
    assert set().union(*granted.values()) == set(defined), "a secret that nobody has"
    for name, service in services().items():
        used = set(re.findall(r"/run/secrets/(\w+)", " ".join(words(service))))
        assert used <= set(granted[name]), f"{name} reads what it is not given"
    with_clusters = {name for name, own in granted.items() if "kafka_backup_password" in own} - {"kafka-backup"}
    assert with_clusters == {ONCE, "airflow-api-server", "airflow-scheduler"}
    authenticated = {name for name, own in granted.items() if "spark_defaults" in own}
    assert authenticated == {"spark-master", "spark-worker-1", "spark-worker-2", "airflow-scheduler"}
    planted = [path.read_text().strip() for path in secrets.iterdir() if path.name.startswith(("kafka", "postgres"))]
    everything = [path.read_text() for path in DOCKER.rglob("*") if path.is_file() and path.parent.name != "secrets"]
    assert not any(secret in text for secret in planted for text in everything)
    environments = " ".join(value for service in services().values() for value in words(service))
    assert not re.search(r"password=|secret=|postgresql\S*://", environments, re.IGNORECASE)


def test_secrets_are_made_once_and_fit(secrets: Path) -> None:
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    subprocess.run([DOCKER / "secrets.sh", secrets], check=True, capture_output=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in secrets.iterdir()} == {0o444}
    assert len(set(before.values())) == len(before)
    Fernet(before["airflow_fernet_key"])
    address = urlsplit(before["airflow_database"])
    assert (address.scheme, address.username, address.password) == (
        "postgresql+psycopg2", "airflow", before["postgres_password"],
    )  # fmt: skip
    assert (address.hostname, address.port, address.path) == ("postgres", 5432, "/airflow")
    postgres = services()["postgres"]["environment"]
    assert (postgres["POSTGRES_USER"], postgres["POSTGRES_DB"]) == ("airflow", "airflow")
    users = services()["airflow-api-server"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]
    assert [user.partition(":")[0] for user in users.split(",")] == list(json.loads(before["airflow_passwords"]))
    assert before["spark_defaults"].startswith((DOCKER / "spark" / "spark-defaults.conf").read_text())


def test_the_flows_are_right(secrets: Path, tmp_path: Path) -> None:
    config = tmp_path / "flows.properties"
    config.write_text((DOCKER / "flows.properties").read_text().replace("/run/secrets", str(secrets)))
    checked = subprocess.run(
        [Path(sys.executable).parent / "ferry", "config", "check", config],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # What is wrong is said first and, after the tables, again.
    warnings = dict.fromkeys(line for line in checked.stdout.splitlines() if line.startswith("warning:"))
    # The containers of one machine talk without TLS, which docs/containers.md says.
    assert [line.split(": ")[2] for line in warnings] == ["primary.security.protocol", "backup.security.protocol"]
    assert "0 errors, 2 warnings" in checked.stdout
    [flow] = load(config).flows
    assert str(flow.flow) == "primary->backup"
    workers = [name for name in services() if name.startswith("spark-worker-")]
    cores = int(properties(EXAMPLE.read_text())["SPARK_WORKER_CORES"])
    assert flow.copy.tasks_max == len(workers) * cores
    environment = services()["airflow-scheduler"]["environment"] | image_environment("airflow")
    assert mounts_of(services()["airflow-scheduler"])[environment["FERRY_CONFIG"]] == str(DOCKER / "flows.properties")
    reports = properties(config.read_text())["ferry.report.dir"]
    assert str(Path(reports).parent) in mounts_of(services()["airflow-scheduler"])


def test_what_whoever_runs_it_makes_stays_out_of_git() -> None:
    for path in ("docker/.env", "docker/secrets/postgres_password"):
        assert subprocess.run(["git", "check-ignore", "--quiet", path], check=False, cwd=ROOT).returncode == 0


def test_airflow_is_published_where_it_listens_and_where_links_lead() -> None:
    service = services()["airflow-api-server"]
    (port,) = service["ports"]
    host, published, inside = (
        port.rsplit(":", 2) if isinstance(port, str) else (port["host_ip"], port["published"], port["target"])
    )
    (listens,) = re.findall(r"airflow api-server --port (\d+)", service["command"][2])
    assert (host, str(inside).removesuffix("/tcp")) == ("127.0.0.1", listens)
    assert urlsplit(service["environment"]["AIRFLOW__API__BASE_URL"]).port == int(published)
    checked = re.findall(r"airflow-api-server:(\d+)", " ".join(service["healthcheck"]["test"]))
    asked = urlsplit(service["environment"]["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"]).port
    assert [*checked, str(asked)] == [listens, listens]


def test_images_put_files_where_their_environment_looks_for_them() -> None:
    copied = dict(
        line.split()[1:] for line in stages()["airflow"] if line.startswith("COPY ") and len(line.split()) == 3
    )
    assert copied["dags"] == image_environment("airflow")["AIRFLOW__CORE__DAGS_FOLDER"]
    holders = {name: secrets_of(services()[name]) for name in OURS if "spark_defaults" in secrets_of(services()[name])}
    assert set(holders) == {"spark-master", "spark-worker-1", "spark-worker-2", "airflow-scheduler"}
    for name, found in holders.items():
        stage = services()[name]["image"].removeprefix("ferry-").partition(":")[0]
        place = image_environment(stage)["SPARK_CONF_DIR"]
        assert found["spark_defaults"] == f"{place}/spark-defaults.conf"
