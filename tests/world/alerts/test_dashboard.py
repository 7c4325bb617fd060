"""The dashboard for Grafana: by Grafana's own schema, and its queries by Prometheus's own parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from tests.commands import promtool
from tests.pure.alerts.test_dashboard import ROOT, expressions


def test_the_file_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "dashboard.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run python tools/dashboard.py"


def test_queries_are_prometheuss(tmp_path: Path) -> None:
    rules = [
        {"record": f"dashboard:query{number}", "expr": one.replace("$window", "1h")}
        for number, one in enumerate(expressions())
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
