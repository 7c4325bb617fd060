"""What workers of a Spark cluster need in addition to Spark, as zip files: Ferry, and the specs of a run's tasks.

What Ferry imports (kafka-python and the codecs) has to be in the workers' Python; see docs/airflow.md.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import ferry

SPECS = "specs.pickle"
EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_package(dest: Path) -> Path:
    """Write the package `ferry` as the zip file `dest` and return its path; equal sources give equal bytes."""
    root = Path(ferry.__file__).parent
    with zipfile.ZipFile(dest, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo((Path(root.name) / path.relative_to(root)).as_posix(), date_time=EPOCH)
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return dest


def zip_specs(dest: Path, name: str, specs: Mapping[int, object]) -> Path:
    """Write the specs as a package `name` in the zip file `dest` and return its path.

    A Spark Connect server logs the plans of failed and interrupted operations with the pickled functions in them. So
    connection data must not be in those functions. The server does not log artifacts.
    """
    dest.touch(mode=0o600)
    with zipfile.ZipFile(dest, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "")
        archive.writestr(f"{name}/{SPECS}", pickle.dumps(dict(specs)))
    return dest


def unpacked(name: str) -> dict[int, Any]:
    """Return what `zip_specs` has written, in a process that has the zip file on its path."""
    specs: dict[int, Any] = pickle.loads(resources.files(name).joinpath(SPECS).read_bytes())
    return specs
