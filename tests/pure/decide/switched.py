"""A switch that moved clients, as the ledger has it."""

from __future__ import annotations

from ferry.model import Flow
from ferry.model.switch import Evidence, Step, StepDone, Switch, SwitchState, Verb

BACK = Flow(source="b", target="a")


def switched(*ends: tuple[str, int, int], verb: Verb = Verb.SWITCHOVER) -> SwitchState:
    """A switch from b to a; of these topic, partition, end its drain was. The flow back is the one that is ready."""
    switch = Switch(
        id="over-1",
        verb=verb,
        named=BACK,
        via=BACK,
        who="ann",
        approved_by="bob",
        approved_ms=0,
        at_ms=0,
    )
    rows = tuple({"topic": name, "partition": number, "source_end": end} for name, number, end in ends)
    drained = StepDone(step=Step.DRAIN, who="ann", begun_ms=0, done_ms=0, evidence=Evidence(sentence="", rows=rows))
    return SwitchState(switch=switch, offset=0, done={Step.DRAIN: drained} if ends else {})
