"""Where the Kafka jars and the Java of this machine are."""

import os
import shutil
from pathlib import Path

from ferry.errors import BadInput

HOME_VARIABLE = "FERRY_KAFKA_HOME"
HOME_FOLDER = ".kafka"


def _candidates() -> list[Path]:
    """Return folders that may hold one folder of jars per Kafka version, the most explicit first."""
    explicit = os.environ.get(HOME_VARIABLE)
    if explicit:
        return [Path(explicit)]
    here = Path.cwd()
    package = Path(__file__).resolve()
    return [folder / HOME_FOLDER for folder in (here, *here.parents, *package.parents)]


def jars(version: str) -> Path:
    """Return the folder with the jars of Kafka `version`: below FERRY_KAFKA_HOME, else `.kafka/` of the checkout.

    Raises:
        BadInput: no such folder; `make setup` creates it.
    """
    for home in _candidates():
        folder = home / version
        if any(folder.glob("kafka_*.jar")):
            return folder
    raise BadInput(
        f"no jars of Kafka {version} below {HOME_VARIABLE} or {HOME_FOLDER}/: run `make setup` in the checkout, "
        f"or point {HOME_VARIABLE} at a folder that has {version}/*.jar"
    )


def java() -> str:
    """Return the java command: that of JAVA_HOME when it is set, else the first on the PATH.

    Raises:
        BadInput: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if command is None:
        raise BadInput("no java command found: install Java 17 or newer, or set JAVA_HOME to it")
    return command
