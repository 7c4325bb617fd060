"""How the copy job is submitted: settings that make a short job start quickly and never copy anything speculatively."""

from __future__ import annotations

import os
from pathlib import Path

from ferry.jvm import FAST_START, archive_options

ARCHIVE_VARIABLE = "FERRY_SPARK_ARCHIVE_DIR"
ARCHIVE_FOLDER = ".spark"


def submit_conf(archive_folder: Path | None = None) -> dict[str, str]:
    """Return Spark properties for `spark-submit --conf`; values hold no secrets.

    `archive_folder` holds the class-data archive that `make setup` builds. Without it the environment variable
    FERRY_SPARK_ARCHIVE_DIR is used, then `.spark` of the working directory. A missing archive only costs seconds.
    """
    folder = archive_folder or Path(os.environ.get(ARCHIVE_VARIABLE) or ARCHIVE_FOLDER)
    return {
        "spark.driver.extraJavaOptions": java_options(folder),
        "spark.driver.memory": "512m",  # the JVM only gets one row per receipt
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.ui.showConsoleProgress": "false",
        # Two attempts of a slot fence each other: harmless, but never useful.
        "spark.speculation": "false",
        # A cancelled task's worker is killed at once: within Spark's two seconds it could begin another chunk.
        "spark.python.task.killTimeout": "0s",
        # The plan is one range and one Python stage: there is nothing to adapt or worth compiling.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }


def java_options(folder: Path) -> str:
    """Return the value of `spark.driver.extraJavaOptions` for short jobs; it names the archive when `folder` has one.

    spark-submit takes it as `--driver-java-options` or `--conf spark.driver.extraJavaOptions=...`; a session that is
    already running cannot. A job took 19.9 s by default and 9.5 s with these options on two busy cores. Most of the
    difference is loading and verifying classes.
    """
    return " ".join([*FAST_START, *archive_options(folder.resolve())])
