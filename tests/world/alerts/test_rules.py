"""The rules for Prometheus, held against Prometheus's own tool (Debian's package prometheus)."""

from __future__ import annotations

import subprocess

from tests.pure.alerts.test_rules import FOLDER


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_well_formed_and_fire_when_they_should() -> None:
    promtool("check", "rules", "ferry-rules.yml")
    promtool("test", "rules", "ferry-rules-test.yml")
