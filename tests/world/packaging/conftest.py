"""The wheel, built once for the tests that install it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.world.documents.commands import told
from tests.world.packaging.installation import CHECKOUT


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ferry's wheel, built as docs/airflow.md says, into a folder of its own and by the Python that is at work."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "ferry_replicator-0.0.0-py3-none-any.whl").touch()  # of an earlier version: one is left
    here = [f"WHEELS={folder}", f"BIN={Path(sys.executable).parent}", "--old-file=.venv/.installed"]
    make = [*told("make", "wheel").words, *here]
    done = subprocess.run(make, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    assert str(built) in done.stdout.splitlines()
    return built
