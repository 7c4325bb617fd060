"""How the copy job is submitted: settings that make a short job start quickly and never copy anything speculatively."""

from __future__ import annotations

import os
from pathlib import Path

from ferry.dev.spark_archive import FOLDER, java_options

ARCHIVE_VARIABLE = "FERRY_SPARK_ARCHIVE_DIR"


def submit_conf(archive_folder: Path | None = None) -> dict[str, str]:
    """Spark properties for `spark-submit --conf`; values hold no secrets.

    `archive_folder` holds the class-data archive that `make setup` builds; without it the environment variable
    FERRY_SPARK_ARCHIVE_DIR is asked, then `.spark` of the working directory. A missing archive only costs seconds.
    """
    folder = archive_folder or Path(os.environ.get(ARCHIVE_VARIABLE) or FOLDER)
    return {
        "spark.driver.extraJavaOptions": java_options(folder),
        "spark.driver.memory": "512m",  # one row per receipt is all that the JVM ever sees
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
        "spark.ui.showConsoleProgress": "false",
        # Two attempts of a slot fence each other: harmless, and never of use.
        "spark.speculation": "false",
        # A cancelled task's worker is killed at once: Spark's two seconds would let it begin another chunk.
        "spark.python.task.killTimeout": "0s",
        # A plan of one range and one Python stage: nothing to adapt, nothing worth compiling.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
