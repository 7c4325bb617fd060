"""Compare what was copied around the cut-overs of a full drill: the newest records of both flows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.drill.acts.looking import kept_of, left_to_spark
from ferry.features.drill.acts.report import Found
from ferry.features.evidence.rules.figures import compared_of, together
from ferry.features.identical.rules.evidence import offsets_checks
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.model.evidence import Compared
from ferry.words import agreeing

BEFORE_MS = 3_600_000
"""How long before the drill began (ms) the first compared record may be."""

MOST_RECORDS = 1_000_000
"""A flow with more records is compared by a sample, so that the comparison takes seconds and not hours."""


def compare_crossed(flows: Iterable[FlowConfig], began_ms: int, found: Found, *, patience_s: float) -> None:
    """Compare the flows, and note the result, what was compared, and whether identical offsets are equal.

    Its numbers are those of all flows together, and each finding names its flow. There is none if there was nothing to
    compare. `began_ms` is when the drill began. The errors of a comparison (`Verifier`) are raised.
    """
    every: list[Compared] = []
    notes: list[str] = []
    kept: list[tuple[int, bool]] = []
    for flow in flows:
        one, note = _compared(flow, began_ms - BEFORE_MS, kept, patience_s)
        notes.append(note)
        if one is not None:
            every.append(replace(one, findings=tuple(f"{flow.flow}: {finding}" for finding in one.findings)))
    found.verification = together(every)
    found.checks += offsets_checks(kept)
    found.notes += notes


def _compared(
    flow: FlowConfig, since_ms: int, kept: list[tuple[int, bool]], patience_s: float
) -> tuple[Compared | None, str]:
    newest = Wanted(since_ms=since_ms)
    for wanted, what in ((newest, "of the hour before the drill, and since"), (Wanted(), "of all times")):
        try:
            count = _count(flow, wanted, patience_s)
        except BadInput as error:  # nothing was ever copied
            return None, f"nothing of {flow.flow} was compared: {error}"
        if not count:
            continue
        sample = -(-count // MOST_RECORDS)
        asked = replace(wanted, sample=sample) if sample > 1 else wanted
        with Verifier(flow, asked, patience_s=patience_s) as verifier:
            survey = verifier.survey()
            left = left_to_spark(survey)
            verified = verifier.sum_up(survey, verifier.compare(survey))
        one = compared_of(verified)
        kept += kept_of(survey, verified)
        part = f", one range in {sample}" if sample > 1 else ""
        also = "".join(f"; {sentence}" for sentence in left)
        them = agreeing(one.records, f"record of {flow.flow} was", f"records of {flow.flow} were")
        return one, f"{them} compared, {what}{part}{also}"
    return None, f"nothing of {flow.flow} was compared: no record of it is left on both clusters"


def _count(flow: FlowConfig, wanted: Wanted, patience_s: float) -> int:
    with Verifier(flow, wanted, patience_s=patience_s) as verifier:
        return verifier.survey().records
