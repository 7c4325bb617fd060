"""Both sides of a switch: the flow along which clients move, and the flow back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import BadInput
from ferry.features.identical.settings import IdenticalSettings
from ferry.model import Flow
from ferry.model.switch import SwitchOptions, Verb

RETRIED_S = 1.0
"""How long the cluster that is left is tried after it did not answer a whole try."""
SILENT_S = 60.0
"""For how long that counts; after it, there is a whole try again."""


@dataclass(slots=True)
class Silence:
    """Until when (monotonic, in s) the cluster that is left counts as silent.

    A switch connects to it in most steps, and must not wait each time for a cluster that is lost.
    """

    until: float = 0.0

    def patience_s(self, whole_s: float) -> float:
        """Return how long the cluster is tried now; a whole try takes `whole_s`."""
        return min(whole_s, RETRIED_S) if time.monotonic() < self.until else whole_s

    def note(self, *, answers: bool, tried_s: float) -> None:
        """Note whether it answered. A short try that fails shows no more than the long one before it."""
        if answers:
            self.until = 0.0
        elif tried_s > RETRIED_S:
            self.until = time.monotonic() + SILENT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The flows of a switch. Clients leave `via.flow.source` and go to `via.flow.target`; `back` is the opposite flow.

    `named` is the flow that the operator named: `via`, or in a failback `back`.
    """

    verb: Verb
    named: Flow
    via: FlowConfig
    back: FlowConfig | None
    clusters: frozenset[str]
    """All aliases of the file."""
    silence: Silence = field(default_factory=Silence, compare=False)

    @property
    def old(self) -> str:
        """The alias of the cluster that is left."""
        return self.via.flow.source

    @property
    def new(self) -> str:
        """The alias of the cluster that is switched to."""
        return self.via.flow.target


def refuse_identical(settings: Settings, flow: FlowConfig, act: str, verb: Verb) -> None:
    """Raise Refused if only one of the two flows keeps offsets, or they keep those of other topics.

    Clients that were moved could not be moved back then. `act` is what was asked for, such as a command.
    """
    back = sides_of(settings, flow, Verb.SWITCHOVER).back
    if back is None or back.of(IdenticalSettings).keeps_as(flow.of(IdenticalSettings)):
        return
    if verb is Verb.FAILBACK:
        flow.of(IdenticalSettings).refuse_return(flow, act, back)
    back.of(IdenticalSettings).refuse_back(back, act, flow)


def refuse_reverse(sides: Sides, options: SwitchOptions) -> None:
    """Raise Refused if a switch is to start a flow back from copies with identical offsets that does not keep them."""
    if sides.verb is not Verb.FAILBACK and sides.back is not None and options.reverse:
        own, back = sides.via.of(IdenticalSettings), sides.back.of(IdenticalSettings)
        if not back.keeps_as(own):
            own.refuse_reverse(sides.via, sides.back)


def sides_of(settings: Settings, named: FlowConfig, verb: Verb) -> Sides:
    """Return the flows of a verb on a flow. Raises BadInput if the file has no flow along which a failback can go."""
    reverse = Flow(source=named.flow.target, target=named.flow.source)
    clusters = frozenset(settings.clusters)
    other = next((one for one in settings.flows if one.flow == reverse), None)
    if verb is not Verb.FAILBACK:
        return Sides(verb=verb, named=named.flow, via=named, back=other, clusters=clusters)
    if other is None:
        raise BadInput(
            f"{settings.path} has no flow {reverse}, along which clients would come back: add {reverse}.enabled = true "
            "and its topics"
        )
    return Sides(verb=verb, named=named.flow, via=other, back=named, clusters=clusters)
