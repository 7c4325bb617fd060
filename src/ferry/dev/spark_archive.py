"""Makes the class-data archive of Spark's classes, which `ferry.run.spark.submit` names to its drivers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ferry.errors import BadInput, Refused
from ferry.jvm import ARCHIVE, FAST_START, QUIET

LOG_TAIL = 2_000


def build(folder: Path, job: Path) -> Path:
    """Run `job` once by spark-submit, as local[1], and archive the classes that it loaded; return the archive's path.

    Raises:
        BadInput: spark-submit is not installed next to this Python.
        Refused: the job failed, or the JVM wrote no archive; the sentence carries the end of the output.
    """
    submit = shutil.which("spark-submit", path=str(Path(sys.executable).parent))
    if submit is None:
        raise BadInput(f"no spark-submit next to {sys.executable}: install ferry-replicator[spark]")
    folder.mkdir(parents=True, exist_ok=True)
    archive = (folder / ARCHIVE).resolve()
    archive.unlink(missing_ok=True)
    draft = archive.with_suffix(".new.jsa")
    draft.unlink(missing_ok=True)
    options = " ".join([*FAST_START, f"-XX:ArchiveClassesAtExit={draft}", *QUIET])
    command = [
        submit, "--master", "local[1]", "--driver-java-options", options,
        "--conf", "spark.ui.enabled=false", "--conf", f"spark.sql.warehouse.dir={folder.resolve()}/warehouse",
        str(job),
    ]  # fmt: skip
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if run.returncode or not draft.exists():
        raise Refused(
            f"Spark's class-data archive was not made (exit code {run.returncode}); the job said:\n"
            f"{(run.stdout + run.stderr)[-LOG_TAIL:].strip()}"
        )
    draft.replace(archive)
    return archive


def main(arguments: list[str]) -> int:
    """`python -m ferry.dev.spark_archive FOLDER JOB` builds the archive."""
    try:
        archive = build(Path(arguments[0]), Path(arguments[1]))
    except (BadInput, Refused) as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{archive.name}: {archive.stat().st_size >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
