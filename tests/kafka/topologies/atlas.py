"""Several clusters and flows from one file, run as Airflow would: one micro-run of a flow after the other."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ferry.config.settings import Settings, parse_settings
from ferry.dev import RunningCluster
from ferry.ledger.receipts import receipts
from ferry.ledger.report import Report
from ferry.model import Plan, Receipt, Refusal
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Lab, Row, new_alias, read_topic, settled
from tests.tiers import ANSWER_S

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Atlas:
    """Clusters by a letter and the flows between them (`a->b`); aliases are this test's own."""

    clusters: Mapping[str, RunningCluster]
    flows: Sequence[str]
    topics: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Keys as in the file; a flow's keys begin with its letters (`a->b.topics`)."""
    mark: str = field(default_factory=new_alias)

    def alias(self, letter: str) -> str:
        """The cluster's alias in the file."""
        return f"{letter}{self.mark}"

    def flow(self, text: str) -> str:
        """`a->b` with this test's aliases."""
        return "->".join(self.alias(letter) for letter in text.split("->"))

    @property
    def config(self) -> Settings:
        """The file, read."""
        lines = {
            "clusters": ", ".join(map(self.alias, self.clusters)),
            **{f"{self.alias(name)}.bootstrap.servers": one.bootstrap for name, one in self.clusters.items()},
            **{f"{self.flow(flow)}.enabled": "true" for flow in self.flows},
            "topics": self.topics,
            "heartbeats.replication.enabled": "false",
            "replication.factor": "1",
            "tasks.max": "1",
        }
        for key, value in self.settings.items():
            flow, dot, name = key.partition(".")
            lines[f"{self.flow(flow)}{dot}{name}" if "->" in flow else key] = value
        return parse_settings("".join(f"{key} = {value}\n" for key, value in lines.items()), "atlas.properties")

    def runs(self, flow: str, lane: str | None = None) -> MicroRuns:
        """Connections for micro-runs of a flow; a context manager."""
        return MicroRuns(self.config.flow(self.flow(flow)), lane=lane, patience_s=ANSWER_S)

    def run(self, flow: str, lane: str | None = None) -> Report:
        """One micro-run."""
        with self.runs(flow, lane) as runs:
            return self.copy(runs, runs.open_run(f"run-{secrets.token_hex(4)}", local_origin()))

    def copy(self, runs: MicroRuns, plan: Plan) -> Report:
        """Copy a plan's slots in this process, and report."""
        one, other = list(self.clusters.values())[:2]
        return Lab(source=one, target=other, alias=self.mark, topics=(self.topics,)).copy(runs, plan)

    def round(self) -> dict[str, int]:
        """One micro-run of every flow in order; the records that each copied."""
        return {flow: self.run(flow).records for flow in self.flows}

    def refusals(self, flow: str) -> list[Refusal]:
        """What a run of the flow would refuse now."""
        with self.runs(flow) as runs:
            return list(runs.preview().refusals)

    def receipts(self, flow: str) -> list[Receipt]:
        """All committed receipts of a flow."""
        with self.runs(flow) as runs:
            return list(receipts(settled(runs)))

    def rows(self, letter: str, topic: str) -> list[list[Row]]:
        """The records of a topic by partition, without their offsets."""
        found = read_topic(self.clusters[letter].bootstrap, topic)
        return [[(0, *row[1:]) for row in rows] for _, rows in sorted(found.items())]
