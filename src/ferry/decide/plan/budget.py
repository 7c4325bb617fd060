"""A run's budgets: how much of what could be copied this run copies, and which slot does."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.decide.plan.candidates import Candidate
from ferry.decide.plan.rules import Rules
from ferry.decide.plan.shares import dealt_slots, fair_shares
from ferry.model import Slice


def within_budget(rules: Rules, candidates: Sequence[Candidate]) -> tuple[Slice, ...]:
    """Cut candidates to the run's budgets, fairly, and deal them to slots by bytes.

    Where a budget is too small for all, those come first that were copied longest ago: nobody starves.
    """
    by_turn = sorted(candidates, key=lambda candidate: candidate.last_generation)
    wanted = {candidate.source: candidate.offsets for candidate in by_turn}
    if rules.max_records is not None:
        wanted = fair_shares(wanted, rules.max_records)
    if rules.max_bytes is not None:
        needs = {c.source: max(1, c.bytes * wanted[c.source] // c.offsets) for c in by_turn if wanted[c.source]}
        shares = fair_shares(needs, rules.max_bytes)
        for source, share in shares.items():
            if share < needs[source]:
                wanted[source] = max(1, wanted[source] * share // needs[source]) if share else 0
    chosen = [candidate for candidate in candidates if wanted[candidate.source] > 0]
    weights = [c.bytes * wanted[c.source] // c.offsets for c in chosen]
    slots = dealt_slots(weights, [c.transform is not None for c in chosen], rules.max_tasks)
    return tuple(
        Slice(
            source=candidate.source,
            target=candidate.target,
            start=candidate.start,
            end=candidate.start + wanted[candidate.source],
            slot=slot,
            bytes_estimate=weight,
            first=candidate.first,
            source_topic_id=candidate.source_topic_id,
            target_topic_id=candidate.target_topic_id,
            target_next=candidate.target_next,
            log_start=candidate.log_start,
            merged=candidate.merged,
            target_end=candidate.target_end,
            since=candidate.since,
            compacted=candidate.compacted,
            read_epoch=candidate.read_epoch,
            read_end=candidate.read_end,
            target_epoch=candidate.target_epoch,
            transform=candidate.transform.name if candidate.transform else "",
            transform_digest=candidate.transform.digest if candidate.transform else "",
        )
        for candidate, weight, slot in zip(chosen, weights, slots, strict=True)
    )
