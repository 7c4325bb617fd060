"""The dashboard for Grafana: by Grafana's own schema, and its queries by Prometheus's own parser."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from tests.commands import promtool
from tests.pure.alerts.test_dashboard import PAGE, ROOT, expressions


def test_the_file_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools" / "dashboard.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run python tools/dashboard.py"


def test_of_two_machines_the_panels_show_the_one_that_reported_last(tmp_path: Path) -> None:
    """Both did a run, m1 long ago: it failed, was slow and left a lag, and another limit was set."""
    shown = {"Last run": 0, "Exposure": 65, "Exposure and its limit": 600, "Last comparison": 1}
    panels = {panel["title"]: panel["targets"][-1]["expr"] for panel in PAGE["panels"] if panel.get("targets")}
    hidden = {"Guards in the last run", "Refused, left, skipped"}
    rules = [
        {"record": f"shown:{number}", "expr": re.sub(r"\$(source|target|lane|topic)", ".*", panels[title])}
        for number, title in enumerate([*shown, *hidden])
    ]
    series = {
        "last_run_timestamp_seconds": ("0x9", "60x9"),
        'last_run_state{state="failed"}': ("1x9", "0x9"),
        'last_run_state{state="partial"}': ("0x9", "0x9"),
        'last_run_guard_count{guard="stuck",outcome="refused"}': ("3x9", "0x9"),
        'last_run_gap_count{kind="stuck"}': ("3x9", "_x9"),
        "lag_timestamp_seconds": ("0x9", "60x9"),
        'lag_seconds{topic="a.t"}': ("3000x9", "5x9"),
        "lag_limit_seconds": ("36000x9", "600x9"),
        'verification_timestamp_seconds{by="run"}': ("0x9", "60x9"),
        'verification_equal{by="run"}': ("0x9", "1x9"),
    }
    told = [
        {"series": f'ferry_{name}{{{of_flow}instance="m{number}",job="n"{more}', "values": values}
        for metric, both in series.items()
        for number, values in enumerate(both, 1)
        for name, _, labels in [metric.partition("{")]
        for more, of_flow in [(f",{labels}" if labels else "}", 'source="a",target="b",lane="live",')]
    ]
    asked = [
        {"expr": f"max(shown:{number})", "eval_time": "2m", "exp_samples": [{"labels": "{}", "value": value}]}
        for number, value in enumerate(shown.values())
    ]
    asked += [
        {"expr": f"shown:{number}", "eval_time": "2m", "exp_samples": []} for number in range(len(shown), len(rules))
    ]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    (tmp_path / "test.yml").write_text(
        yaml.safe_dump(
            {
                "rule_files": ["rules.yml"],
                "tests": [{"interval": "1m", "input_series": told, "promql_expr_test": asked}],
            }
        )
    )
    done = promtool("test", "rules", "test.yml", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_queries_are_prometheuss(tmp_path: Path) -> None:
    rules = [
        {"record": f"dashboard:query{number}", "expr": one.replace("$window", "1h")}
        for number, one in enumerate(expressions())
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
