"""Both sides of a switch: the flow along which clients move, the flow back, and connections without the source."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import BadInput, Refused, Unreachable
from ferry.model import Flow
from ferry.model.switch import Verb
from ferry.run.flow.connections import FlowConnections

LOST_SOURCE_SECONDS = 15.0
"""How long a failover waits for a source that may be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The flows of a switch. Clients leave `via.flow.source` and go to `via.flow.target`; `back` leads against it.

    `named` is the flow as it was named: `via` itself, or of a failback `back`.
    """

    verb: Verb
    named: Flow
    via: FlowConfig
    back: FlowConfig | None

    @property
    def old(self) -> str:
        """The alias of the cluster that is left."""
        return self.via.flow.source

    @property
    def new(self) -> str:
        """The alias of the cluster that is switched to."""
        return self.via.flow.target


def sides_of(settings: Settings, named: FlowConfig, verb: Verb) -> Sides:
    """The flows that a verb on a flow is about; BadInput when a failback has no flow to go back along."""
    reverse = Flow(source=named.flow.target, target=named.flow.source)
    other = next((one for one in settings.flows if one.flow == reverse), None)
    if verb is not Verb.FAILBACK:
        return Sides(verb=verb, named=named.flow, via=named, back=other)
    if other is None:
        raise BadInput(
            f"{settings.path} has no flow {reverse}, along which clients would come back: add {reverse}.enabled = true "
            "and its topics"
        )
    return Sides(verb=verb, named=named.flow, via=other, back=named)


class PairConnections(FlowConnections):
    """Both clusters of a flow, of which the source may be gone: `source_error` says why it is."""

    source_error: str | None = None

    @classmethod
    def of_lost(cls, flow: FlowConfig, *, patience_s: float) -> PairConnections:
        """For a failover: the source gets less patience than the target."""
        made = cls.of(flow, patience_s=patience_s)
        made.source.patience_s = min(patience_s, LOST_SOURCE_SECONDS)
        return made

    async def _open(self) -> None:
        opening = self.loop.call_soon_with_future(self.source.open)
        await self.loop.call_soon_with_future(self.target.open)
        try:
            await opening
        except (Unreachable, Refused) as error:
            self.source_error = str(error)

    @property
    def has_source(self) -> bool:
        """Whether the source answered when it was asked first."""
        return self.source_error is None
