"""Answers the question of the operator's page about one record, from both clusters."""

from __future__ import annotations

from collections.abc import Hashable

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.errors import Refused
from ferry.features.records.acts.one_record import look_at
from ferry.features.records.rules.one_record import BothSides
from ferry.features.records.rules.page import OfRecord, RecordStory, record_story
from ferry.features.records.settings import PAGE_RECORDS, RecordSettings
from ferry.page.part import FromClusters


def _find(flow: FlowConfig, asked: OfRecord, patience_s: float) -> BothSides:
    if not flow.of(RecordSettings).on_page:
        raise Refused(f"records of flow {flow.flow} are not shown: set {PAGE_RECORDS.name} = true in its file")
    chosen = in_lane(flow, asked.lane) if asked.lane else flow
    return look_at(chosen, asked.place, asked.offset, backward=asked.backward, patience_s=patience_s)


def _show(flow: FlowConfig, asked: OfRecord, found: BothSides) -> RecordStory:
    return record_story(found, flow.flow.source, flow.flow.target, asked.style)


def _same(asked: OfRecord) -> Hashable:
    return asked.place, asked.offset, asked.backward, asked.lane


PAGE = (FromClusters(of=OfRecord, find=_find, show=_show, same=_same),)
