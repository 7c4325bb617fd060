"""The findings of `ferry doctor` about the file, the clusters and the runs. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ferry.config.text.problem import Problem, Severity
from ferry.features.doctor.rules.clusters import ClusterFacts, written_version
from ferry.messages.refusals import words_of
from ferry.model import Refusal, with_text
from ferry.model.check import Check
from ferry.model.finding import Finding, Grade
from ferry.words import count_of, several

FILE = "file"
MACHINE = "machine"
OLDEST = {"source": (1, 1), "target": (2, 8)}
"""The oldest Kafka that each side may have, major and minor (docs/support-matrix.md)."""


_GRADES = {
    "source": Grade.FAIL,
    "replication": Grade.FAIL,
    "standby": Grade.PASS,
    "refusals": Grade.FAIL,
    "target": Grade.FAIL,
    "clock": Grade.WARN,
    "lag": Grade.WARN,
    "ledger": Grade.WARN,
    "retention": Grade.WARN,
    "writers": Grade.WARN,
}
"""The checks of `ferry readiness` that concern runs, each with the grade when it fails; others concern a switch."""
_PARTITIONS = {"source": "source partitions", "target": "target partitions"}
"""Other names of checks that would be mistaken for those of the connection."""


def of_problems(file: str, problems: Collection[Problem], flows: int) -> list[Finding]:
    """Return a finding for each problem of the file, or one that there is none."""
    if not problems:
        message = f"{file} has {count_of(flows, 'enabled flow')} and no problem"
        return [Finding(about=FILE, check="configuration", grade=Grade.PASS, message=message)]
    grades = {Severity.ERROR: Grade.FAIL, Severity.WARNING: Grade.WARN}
    return [
        Finding(
            about=FILE,
            check="configuration",
            grade=grades[problem.severity],
            message=with_text(problem.message, str(problem)),
        )
        for problem in problems
    ]


def of_cluster(flow: str, side: str, facts: ClusterFacts) -> Finding:
    """Return what the answers of a cluster's brokers show."""
    versions, version = facts.versions, facts.span_of_versions or "an unknown version"
    count = count_of(len(facts.brokers), "broker")
    message = (
        f"cluster {facts.alias} ({facts.cluster_id}) answers: {count}, Kafka {version}, "
        f"transaction.version {facts.transaction_version}"
    )
    silent = [one for one in facts.brokers if not one.answers]
    grade = Grade.PASS
    if silent:
        named = several([f"broker {one.id} at {one.address}" for one in silent])
        grade = Grade.WARN
        message = f"{message}, but {named} did not answer ({silent[0].why}): look at its log and advertised.listeners"
    if not versions:
        grade, message = Grade.UNKNOWN, f"{message}; see with kafka-broker-api-versions.sh that Ferry supports it"
    elif versions[0] < OLDEST[side]:
        oldest = written_version(OLDEST[side])
        grade, message = Grade.FAIL, f"{message}; upgrade it: a {side} needs Kafka {oldest} or newer"
    return Finding(about=flow, check=side, grade=grade, message=message)


def of_metrics_files(folder: str, others: Sequence[str]) -> Finding:
    """Return what the metrics files in a folder show; `others` are of no enabled flow of the file."""
    if not others:
        message = f"folder {folder} has no metrics file of a flow that is not enabled"
        return Finding(about=MACHINE, check="metrics files", grade=Grade.PASS, message=message)
    message = (
        f"folder {folder} has metrics of no enabled flow of the file ({several(others)}), by which alerts never end: "
        "delete them, unless another file has the flow, and silence its labels for seven days"
    )
    return Finding(about=MACHINE, check="metrics files", grade=Grade.WARN, message=message)


def of_readiness(flow: str, checks: Iterable[Check]) -> Iterator[Finding]:
    """Yield those checks of `ferry readiness` that concern runs."""
    for check in checks:
        if check.name in _GRADES:
            passed = Grade.PASS if check.known else Grade.UNKNOWN
            grade = passed if check.ok else _GRADES[check.name]
            name = _PARTITIONS.get(check.name, check.name)
            yield Finding(about=flow, check=name, grade=grade, message=check.message)


def of_first_run(flow: str, refusals: Sequence[Refusal]) -> list[Finding]:
    """Return what is known of a flow that has no ledger yet: what its first run would refuse."""
    ledger = Finding(
        about=flow, check="ledger", grade=Grade.PASS, message="there is none yet: the first run creates it"
    )
    if not refusals:
        message = "the first run would refuse nothing"
        return [ledger, Finding(about=flow, check="refusals", grade=Grade.PASS, message=message)]
    more = f" and {len(refusals) - 1} more, see ferry plan" if len(refusals) > 1 else ""
    said = f"the first run would refuse: {refusals[0].message} [{refusals[0].kind}]{more}"
    message = with_text(words_of(refusals[0]), said)
    return [ledger, Finding(about=flow, check="refusals", grade=Grade.FAIL, message=message)]


def count_of_grade(findings: Iterable[Finding], grade: Grade) -> int:
    """Return how many of the findings have the grade."""
    return sum(finding.grade is grade for finding in findings)
