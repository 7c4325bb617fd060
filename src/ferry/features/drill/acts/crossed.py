"""Compare what was copied around the cut-overs of a full drill: the newest records of both flows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.drill.acts.looking import left_to_spark
from ferry.features.evidence.rules.figures import compared_of, together
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.model.evidence import Compared
from ferry.words import agreeing

BEFORE_MS = 3_600_000
"""How long before the drill began (ms) the first compared record may be."""

MOST_RECORDS = 1_000_000
"""A flow with more records is compared by a sample, so that the comparison takes seconds and not hours."""


def compare_crossed(
    flows: Iterable[FlowConfig], began_ms: int, *, patience_s: float
) -> tuple[Compared | None, list[str]]:
    """Compare the flows, and return the result together with notes about what was compared.

    Its numbers are those of all flows together, and each finding names its flow. It is None if there was nothing to
    compare. `began_ms` is when the drill began. The errors of a comparison (`Verifier`) are raised.
    """
    found: list[Compared] = []
    notes: list[str] = []
    for flow in flows:
        one, note = _compared(flow, began_ms - BEFORE_MS, patience_s)
        notes.append(note)
        if one is not None:
            found.append(replace(one, findings=tuple(f"{flow.flow}: {finding}" for finding in one.findings)))
    return together(found), notes


def _compared(flow: FlowConfig, since_ms: int, patience_s: float) -> tuple[Compared | None, str]:
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
            one = compared_of(verifier.sum_up(survey, verifier.compare(survey)))
        part = f", one range in {sample}" if sample > 1 else ""
        also = "".join(f"; {sentence}" for sentence in left)
        them = agreeing(one.records, f"record of {flow.flow} was", f"records of {flow.flow} were")
        return one, f"{them} compared, {what}{part}{also}"
    return None, f"nothing of {flow.flow} was compared: no record of it is left on both clusters"


def _count(flow: FlowConfig, wanted: Wanted, patience_s: float) -> int:
    with Verifier(flow, wanted, patience_s=patience_s) as verifier:
        return verifier.survey().records
