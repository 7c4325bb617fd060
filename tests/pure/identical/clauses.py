"""The clauses of identical offsets, each to be switched off; the product has no such switches."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from unittest.mock import patch

from ferry.features.identical.rules import next_step as rules
from ferry.features.identical.rules.values import Code, Hole, Limits, Look, Run, Send, Step, View
from tests.pure.identical import world
from tests.pure.identical.broker import Coordinator, Partition
from tests.pure.identical.writer import Act, Asking, Request, Writer


def _switched(*patches: AbstractContextManager[object]) -> ExitStack:
    stack = ExitStack()
    for change in patches:
        stack.enter_context(change)
    return stack


def markers_at_once() -> ExitStack:
    """Holes are passed although something may still arrive."""
    pass_hole = rules.pass_hole

    def at_once(look: Look, view: View, hole: Hole, limits: Limits) -> Step:
        return pass_hole(look, replace(view, quiet_at=0), hole, limits)

    return _switched(patch.object(rules, "pass_hole", at_once))


def data_at_once() -> ExitStack:
    """Records are sent although something may arrive that no sequence refuses."""

    def always(look: Look, view: View, run: Run, limits: Limits) -> bool:
        return True

    return _switched(patch.object(rules, "compared", always))


def loose_forgotten() -> ExitStack:
    """A successor does not ask whether an earlier writer was loose."""
    compared = rules.compared

    def forgetful(look: Look, view: View, run: Run, limits: Limits) -> bool:
        return compared(look, replace(view, loose=False), run, limits)

    return _switched(patch.object(rules, "compared", forgetful))


def timestamps_ignored() -> ExitStack:
    """Old records are sent as new ones are, although the producer state expires by their timestamps."""

    def always(run: Run, view: View, limits: Limits) -> bool:
        return True

    return _switched(patch.object(rules, "strict", always))


def absences_unrecorded() -> ExitStack:
    """Absent records are passed without a word in the ledger."""

    def always(view: View) -> bool:
        return True

    return _switched(patch.object(rules, "recorded", always))


def loose_unconfirmed() -> ExitStack:
    """A writer is loose as soon as the ledger has its record, without asking for a newer run."""

    def confirm_loose(self: Writer) -> Asking:
        self.own_loose = True
        yield from ()

    return _switched(patch.object(Writer, "confirm_loose", confirm_loose))


def lease_ignored() -> ExitStack:
    """A writer continues however long ago it saw the ledger: a clock that stops in sleep does the same."""

    def never(view: View, limits: Limits) -> bool:
        return False

    return _switched(patch.object(rules, "lease_over", never))


def connections_forever() -> ExitStack:
    """Brokers never close idle connections, so a request may arrive at any time."""
    return _switched(patch.object(world, "LATENESS", 1_000_000))


def unsettled() -> ExitStack:
    """The high watermark is taken for the end of the leader's log."""

    def always(look: Look) -> bool:
        return True

    return _switched(patch.object(rules, "settled", always))


def unsettled_and_described() -> ExitStack:
    """The end by the high watermark, and the sequence by DescribeProducers."""

    def described(look: Look, view: View) -> int:
        return look.state_sequence or 0

    def compared(look: Look, view: View, run: Run, limits: Limits) -> bool:
        return not view.loose and rules.strict(run, view, limits)

    return _switched(
        unsettled(), patch.object(rules, "sequence_at", described), patch.object(rules, "compared", compared)
    )


def always_clean() -> ExitStack:
    """A run ends clean although something of its predecessor may still arrive."""

    def always(look: Look, view: View) -> bool:
        return True

    return _switched(patch.object(rules, "is_clean", always))


def lease_not_awaited() -> ExitStack:
    """A successor waits for late requests, but not for its predecessor's lease."""

    def after(answered_at: int, clean: bool, limits: Limits) -> int:
        return answered_at if clean else rules.quiet_after(answered_at, limits)

    return _switched(patch.object(rules, "quiet_after_takeover", after))


def lateness_not_awaited() -> ExitStack:
    """A successor waits for its predecessor's lease, but not for late requests."""

    def after(answered_at: int, clean: bool, limits: Limits) -> int:
        return answered_at if clean else answered_at + limits.lease

    return _switched(patch.object(rules, "quiet_after_takeover", after))


def own_requests_forgotten() -> ExitStack:
    """A writer continues after a request that was not answered."""

    def at_once(asked_at: int, limits: Limits) -> int:
        return 0

    return _switched(patch.object(rules, "quiet_after", at_once))


def unsealed() -> ExitStack:
    """A transaction's marker is taken for the last one."""

    def never(look: Look, view: View) -> bool:
        return False

    return _switched(patch.object(rules, "needs_seal", never))


def filled_to_the_brim() -> ExitStack:
    """A transaction of n - 1 records passes n offsets: its marker is counted once."""

    def filling(left: int, limits: Limits) -> int:
        return left - 1

    return _switched(patch.object(rules, "filling", filling))


def stale_looks_sent() -> ExitStack:
    """A write goes to the broker that leads, and not to the one that answered the reading."""
    request = world.Near.request

    def anywhere(self: world.Near, label: str, act: Act, *, writes: bool = False, stale: bool = False) -> Request:
        return request(self, label, act, writes=writes)

    return _switched(patch.object(world.Near, "request", anywhere))


def slot_unfenced() -> ExitStack:
    """A successor takes the slot's epoch over without InitProducerId, so an open transaction stays open."""
    initialise = Coordinator.initialise

    def taken_over(self: Coordinator) -> int:
        return self.epoch if self.epoch >= 0 else initialise(self)

    return _switched(patch.object(Coordinator, "initialise", taken_over))


def base_unchecked() -> ExitStack:
    """The base offset of an answer is not compared."""

    def never(step: Send, base: int) -> Code | None:
        return None

    return _switched(patch.object(rules, "after_send", never))


def damage_unseen() -> ExitStack:
    """No rule asks who wrote last, whether it is right, and whether the log grew."""

    def never(look: Look, view: View) -> bool:
        return False

    def unshifted(look: Look) -> bool:
        return False

    return _switched(
        base_unchecked(),
        patch.object(rules, "is_foreign", never),
        patch.object(rules, "is_shifted", unshifted),
        patch.object(rules, "unexpected", never),
    )


def losses_unseen() -> ExitStack:
    """A log that ends before its receipts is continued."""

    def never(look: Look, view: View) -> bool:
        return False

    return _switched(patch.object(rules, "is_lost", never))


def all_deleted() -> ExitStack:
    """DeleteRecords takes the last data batch, too."""

    def keeping(self: Partition, lane: int) -> int:
        return self.hw

    return _switched(patch.object(Partition, "deletable", keeping))


def seal_forgotten() -> ExitStack:
    """DeleteRecords takes a seal while a marker may come once more."""

    def never(self: world.World) -> bool:
        return False

    return _switched(patch.object(world.World, "keeps_seal", never))
