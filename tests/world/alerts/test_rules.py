"""The rules for Prometheus, held against Prometheus's own tool (Debian's package prometheus)."""

from __future__ import annotations

from tests.commands import promtool
from tests.pure.alerts.test_rules import FOLDER


def test_the_rules_are_well_formed_and_fire_when_they_should() -> None:
    for arguments in (("check", "rules", "ferry-rules.yml"), ("test", "rules", "ferry-rules-test.yml")):
        done = promtool(*arguments, folder=FOLDER)
        assert done.returncode == 0, done.stdout + done.stderr
