"""Ferry as one file for `--py-files`, so that workers of a Spark cluster need not have it installed.

What Ferry itself imports (kafka-python and the codecs) has to be in the workers' Python; see docs/airflow.md.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import ferry

EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_package(dest: Path) -> Path:
    """Write the package `ferry` as the zip file `dest` and answer its path; equal sources give equal bytes."""
    root = Path(ferry.__file__).parent
    with zipfile.ZipFile(dest, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo((Path(root.name) / path.relative_to(root)).as_posix(), date_time=EPOCH)
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return dest
