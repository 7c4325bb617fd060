"""A callback as a user has one: it writes down what it is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


def hear(alert: Any, context: Mapping[str, Any], file: str) -> None:
    """Add the alert to a file."""
    assert context["dag_run"]
    with Path(file).open("a") as out:
        out.write(json.dumps({"kind": alert.kind, "flow": alert.flow, "run": alert.run, "said": alert.sentence}) + "\n")


class Hearing(BaseNotifier):
    """A notifier: its message is a template."""

    template_fields = ("said",)

    def __init__(self, *, said: str, file: str) -> None:
        super().__init__()
        self.said = said
        self.file = file

    def notify(self, context: Mapping[str, Any]) -> None:
        """Add the message to a file."""
        with Path(self.file).open("a") as out:
            out.write(json.dumps({"said": self.said}) + "\n")
