"""Write src/ferry/config/flow/spark_functions.json: the names of all functions that Spark itself has.

Usage: python tools/spark_functions.py. It asks the installed PySpark by SHOW SYSTEM FUNCTIONS; a test of tests/spark
compares the file with the answer.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from ferry.features.records.spark.local_session import local_session

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "src" / "ferry" / "config" / "flow" / "spark_functions.json"


def names(spark: SparkSession) -> list[str]:
    """Return the names that can precede a bracket: operators are left out."""
    found = (row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect())
    return sorted(name for name in found if name.isidentifier())


def rendered(version: str, found: list[str]) -> str:
    """Return the file's text, one line for each name, so that a new Spark shows as a readable difference."""
    lines = ",\n".join(f"  {json.dumps(name)}" for name in found)
    return f'{{\n "spark": {json.dumps(version)},\n "source": "SHOW SYSTEM FUNCTIONS",\n "names": [\n{lines}\n ]\n}}\n'


def main() -> int:
    """Write the file."""
    with local_session("spark_functions") as spark:
        FILE.write_text(rendered(spark.version, names(spark)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
