"""The page about configuration says what the reader does."""

import subprocess
import sys

from tests.pure.config.test_documentation import PAGE


def test_the_page_of_all_keys_is_up_to_date() -> None:
    command = [sys.executable, str(PAGE.parents[1] / "tools" / "key_table.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run python tools/key_table.py"
