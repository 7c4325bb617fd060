"""The moment in which a test catches a process of the task `copy`: before it copies, or continues after its wait."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

FOLDER = "FERRY_TEST_MOMENTS"
"""The variable with the folder in which the files of this module are."""
WANTED = "wanted"
CAUGHT = "caught"


def moment(context: Any) -> None:
    """Wait here, if a test wants that, until it removes the file that has this process's id."""
    folder = Path(os.environ[FOLDER])
    if context["ti"].task_id != "copy" or not (folder / WANTED).exists():
        return
    (folder / WANTED).write_text(str(os.getpid()))
    (folder / WANTED).rename(folder / CAUGHT)
    while (folder / CAUGHT).exists():
        time.sleep(0.1)
