"""Which runs wait while a switch drains their flow with runs of its own. Pure."""

from __future__ import annotations

from ferry.ledger.ledger import LedgerView
from ferry.ledger.switch_codec import open_switches
from ferry.messages.catalogue import sentence
from ferry.model import RunRecord, Sentence, lane_kind
from ferry.model.switch import Step, SwitchState, next_step


def drain_run(switch: str, token: str) -> str:
    """Return the id of a micro-run with which a switch drains a flow."""
    return f"{_prefix(switch)}{token}"


def is_drain_run(switch: str, run: str) -> bool:
    """Return whether a micro-run is one with which that switch drains a flow."""
    return run.startswith(_prefix(switch))


def standing_back(view: LedgerView, record: RunRecord, now_ms: int) -> Sentence | None:
    """Return why a run must not be opened now, in one sentence; None when it may.

    Lanes other than the flow's own are not affected by the drain. A drain that was killed holds runs back no longer
    than its time limit.
    """
    if lane_kind(record.lane) is not None:
        return None
    for state in open_switches(view).values():
        switch, until_ms = state.switch, _drains_until_ms(state)
        if switch.via == record.flow and now_ms < until_ms and not is_drain_run(switch.id, record.run):
            return sentence(
                "superseded.draining",
                run=record.run,
                flow=str(record.flow),
                verb=str(switch.verb),
                switch=switch.id,
                named=str(switch.named),
                until_ms=until_ms,
            )
    return None


def _drains_until_ms(state: SwitchState) -> int:
    """Return the time (epoch ms) until which a switch's drain may take; 0 where it is not under way."""
    begun = state.begun.get(Step.DRAIN)
    if begun is None or next_step(state) is not Step.DRAIN:
        return 0
    return begun.begun_ms + round(1_000 * state.switch.options.drain_timeout_seconds)


def _prefix(switch: str) -> str:
    return f"{switch}-drain-"
