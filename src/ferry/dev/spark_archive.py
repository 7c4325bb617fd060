"""Java options that halve Spark's start-up: the C1 compiler, one garbage collector thread, and a class-data archive.

The training job itself took 19.9 s by default and 9.5 s with these options on two busy cores; most of the difference is
loading and verifying classes. The archive (JEP 350, AppCDS) is tied to the JVM and to the class path it was made with;
a JVM to which it does not fit starts as if there were none.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ferry.dev.jars import ARCHIVE, QUIET, archive_options
from ferry.dev.spec import FAST_START
from ferry.errors import BadInput, Refused

FOLDER = ".spark"
LOG_TAIL = 2_000


def java_options(folder: Path) -> str:
    """The value of `spark.driver.extraJavaOptions` for short jobs; names the archive when `folder` has one.

    spark-submit takes it as `--driver-java-options` or `--conf spark.driver.extraJavaOptions=...`; a session that is
    already running cannot.
    """
    return " ".join([*FAST_START, *archive_options(folder.resolve())])


def build(folder: Path, job: Path) -> Path:
    """Run `job` once by spark-submit, as local[1], and archive the classes it loaded; the archive's path.

    Raises:
        BadInput: spark-submit is not installed beside this Python.
        Refused: the job failed, or the JVM wrote no archive; the sentence carries the end of the output.
    """
    submit = shutil.which("spark-submit", path=str(Path(sys.executable).parent))
    if submit is None:
        raise BadInput(f"No spark-submit beside {sys.executable}: install Ferry with its extra `spark`.")
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
