"""`ferry doctor`: what is wrong with the file, this machine, the clusters and what they permit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.codec.form import F, Form, Json
from ferry.config.client_check import all_problems
from ferry.config.effective import overlooked
from ferry.config.login.environment import from_environment
from ferry.config.reading.examine import examine
from ferry.config.settings import properties_text
from ferry.config.text.problem import Severity, in_file_order
from ferry.features.doctor.acts.machine import look_at_machine
from ferry.features.doctor.rules.findings import count_of_grade, of_problems
from ferry.ledger.sentence_codec import OF_MESSAGE
from ferry.model.finding import Finding, Grade

ILL = 1
SHOWN = {Grade.PASS: "PASS", Grade.WARN: "WARN", Grade.FAIL: "FAIL", Grade.UNKNOWN: "NOT KNOWN"}

FINDING = Form(
    Finding,
    F("about", says="file, machine, or the flow"),
    F("check", says="a stable word; more may come"),
    F("grade"),
    F("message", says="one sentence; if the grade is not pass, with what to do"),
    *OF_MESSAGE,
)


@command(all_flows=True, table=True)
def doctor_command(context: Context) -> int:
    """Check the file, this machine, and the clusters and permissions of each flow. Writes nothing.

    One line for each check: PASS, WARN, FAIL, or NOT KNOWN where nothing could be found out. With FLOW only that flow.
    Exit code 1 when a check failed.
    """
    found = examination(context)
    context.answer(lambda: doctor_json(found), lambda: show_findings(found))
    return ILL if any(finding.grade is Grade.FAIL for finding in found) else 0


def examination(context: Context) -> list[Finding]:
    """Return all findings; without those of flows when the file has an error. Raises BadInput for an unknown flow."""
    from ferry.features.doctor.acts.cluster import look_at_flow  # noqa: PLC0415 - brings the Kafka clients

    path = context.config_file()
    whole = examine(properties_text(path, context.variable), str(path), from_environment)
    examined = context.limited(whole)
    # Those that `ferry config check` prints.
    problems = in_file_order((*all_problems(examined), *overlooked(examined)))
    found = of_problems(str(path), problems, len(examined.flows))
    if any(problem.severity is Severity.ERROR for problem in problems):
        return [*found, *look_at_machine((), ())]
    # Its warnings are findings already.
    settings = replace(context, quiet=True).settings()
    flows = settings.flows if context.named is None else (context.flow_of(settings),)
    found += look_at_machine(flows, whole.flows)
    for flow in flows:
        found += look_at_flow(flow, patience_s=context.patience_s)
    return found


def doctor_json(found: Sequence[Finding]) -> Json:
    """Return the findings as the documented JSON object, with how many have each grade."""
    counts = {grade.value: count_of_grade(found, grade) for grade in Grade}
    return {"findings": [FINDING.dump(finding) for finding in found], "counts": counts}


def show_findings(found: Sequence[Finding]) -> None:
    """Print all checks, then those that did not pass again, failures last, where a terminal shows them."""
    print_table(("about", "check", "grade", "what was found"), [_row(finding) for finding in found])
    for grade in (Grade.UNKNOWN, Grade.WARN, Grade.FAIL):
        lines = [finding for finding in found if finding.grade is grade]
        if lines:
            echo()
        for finding in lines:
            echo(f"{SHOWN[grade]}: {finding.about}: {finding.check}: {finding.message}")
    echo()
    echo(", ".join(f"{count_of_grade(found, grade)} {SHOWN[grade]}" for grade in Grade))


def _row(finding: Finding) -> tuple[str, ...]:
    return finding.about, finding.check, SHOWN[finding.grade], finding.message
