"""Why a flow takes a topic or a consumer group, or leaves it: the setting that decided, its line and its item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.catalogue import is_acted_on
from ferry.config.reading.findings import Setting
from ferry.config.text.filters import PatternList
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.model import scratch_lane
from ferry.policy import illegal_name, is_ferry_internal, is_heartbeats_topic, would_loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A verdict, the setting that decided it (None: no setting can change it), and the item of its list."""

    taken: bool
    reason: str
    """Half a sentence that continues from the name."""
    setting: Setting | None = None
    item: str | None = None


def why_topic(flow: FlowConfig, settings: Iterable[Setting], topic: str) -> Why:
    """Return what the flow does with the source's `topic`, in the order of the checks of `TopicSelection`."""
    never = _never(topic)
    if never is not None:
        return Why(taken=False, reason=never)
    by_name = {setting.name: setting for setting in settings}
    policy = by_name.get("replication.policy.class")
    selection = flow.topics.selection
    if selection.is_internal(topic):
        return Why(taken=False, reason="is an internal topic of Kafka or MirrorMaker", setting=policy)
    if would_loop(selection.policy, topic, flow.flow.target):
        return Why(taken=False, reason=f"came from {flow.flow.target}, and would go round in a loop", setting=policy)
    goes_round = _goes_round(flow, topic)
    if goes_round is not None:
        return Why(taken=False, reason=goes_round, setting=policy)
    listed = flow.topics.filter
    if not listed.takes(topic) and selection.heartbeats and is_heartbeats_topic(selection.policy, topic):
        reason = "is a heartbeat topic, which is copied whatever the lists say"
        return Why(taken=True, reason=reason, setting=by_name.get("heartbeats.replication.enabled"))
    return _listed("topics", listed.include, listed.exclude, by_name, topic)


def _goes_round(flow: FlowConfig, topic: str) -> str | None:
    """Return why a topic that the lists take is not copied because it also belongs to another flow."""
    selection = flow.topics.selection
    made = selection.transformed_there(topic) if flow.topics.filter.takes(topic) else None
    if made is not None:
        return f"is left alone: {made}"
    way = selection.way_back(topic) if selection.takes(topic) else ()
    return f"would come back by {', '.join(map(str, way))} and be copied again, so it is refused" if way else None


def _never(topic: str) -> str | None:
    """Return why no setting makes a flow copy the topic."""
    illegal = illegal_name(topic)
    if illegal is not None:
        return f"is not a topic's name, for it {illegal}; one name can be asked for, not a pattern"
    lane = scratch_lane(topic)
    if lane is not None:
        return f"is a scratch topic of lane {lane}, which is never copied"
    return "is a ledger of Ferry, which is never copied" if is_ferry_internal(topic) else None


def why_group(flow: FlowConfig, settings: Iterable[Setting], group: str) -> Why:
    """Return what the flow does with the consumer group `group`."""
    by_name = {setting.name: setting for setting in settings}
    why = _listed("groups", flow.groups.filter.include, flow.groups.filter.exclude, by_name, group)
    return replace(why, reason=f"{why.reason}, and no run acts on groups yet") if not is_acted_on("groups") else why


def _listed(key: str, include: PatternList, exclude: PatternList, settings: dict[str, Setting], name: str) -> Why:
    if not include.matches(name):
        return Why(taken=False, reason=f"is not in {key}", setting=settings.get(key))
    if exclude.matches(name):
        setting = settings.get(f"{key}.exclude")
        return Why(taken=False, reason=f"is in {key}.exclude", setting=setting, item=_item(exclude, name))
    return Why(taken=True, reason=f"is in {key}", setting=settings.get(key), item=_item(include, name))


def _item(patterns: PatternList, name: str) -> str | None:
    """Return the first item that matches by itself.

    None when only the joined list does (a group that holds a comma).
    """
    for item in patterns.items:
        try:
            if compile_java(item).fullmatch(name) is not None:
                return item
        except NotExpressible:
            continue
    return None
