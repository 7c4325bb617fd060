"""Whether lanes have written identical offsets, whatever the file says now."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.identical.settings import IdenticalSettings
from ferry.ledger.ledger import LedgerView
from ferry.ledger.producer_codec import identical_lanes, sent_places
from ferry.messages.catalogue import sentence
from ferry.model import TopicPartition


def written_places(view: LedgerView) -> frozenset[TopicPartition]:
    """Return the target partitions to which any lane of a ledger may have sent batches at the source's offsets."""
    return frozenset(place for lane in identical_lanes(view) for place in sent_places(view, lane))


def refuse_written(
    view: LedgerView, flow: FlowConfig, act: str, *, moves: bool = False, topic: str | None = None
) -> None:
    """Raise Refused if the flow's lane has identical offsets, by the file or by the ledger: `act` supports none.

    A lane that wrote them keeps what they cost, also if the file says `translated` by now. Records may have no receipt,
    and a request may be late. `moves`: it supports them if the file says `identical`, as moves of clients do. `topic`:
    it is about this source topic alone.
    """
    flow.of(IdenticalSettings).refuse(flow, act, topic)
    sent = sorted(
        place for place in sent_places(view, flow.lane) if topic is None or place.topic == flow.copy_of(topic)
    )
    if sent:
        facts = {"act": act, "flow": str(flow.flow), "lane": flow.lane, "place": str(sent[0])}
        raise Refused(sentence("identical.written.moves" if moves else "identical.written", **facts))
