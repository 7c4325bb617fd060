"""The known keys are Kafka's, and each has a fate."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_data_file_agrees_with_the_jars() -> None:
    command = [sys.executable, str(ROOT / "tools" / "kafka_keys.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run python tools/kafka_keys.py"
