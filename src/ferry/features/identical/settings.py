"""The settings of identical offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from ferry.config.flow.guards import FAIL
from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey
from ferry.config.text.filters import PatternList
from ferry.errors import Refused
from ferry.messages.catalogue import sentence
from ferry.policy import ReplicationPolicy, is_heartbeats_topic

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig

TRANSLATED = "translated"
"""Records get the target's next offsets, and Ferry translates."""
KEPT = "identical"
"""Records get the offsets that they have at the source, or the partition is refused."""

PASSING = ("topic_recreated", "retention_passed", "source_truncated", "target_changed", "foreign_writer")
"""Guards whose other policies pass offsets over, or copy them again."""

OFFSETS = FerryKey(
    name="ferry.offsets",
    default=TRANSLATED,
    values="`translated` or `identical`",
    meaning="which offsets records get at the target; `identical`: those of the source, and what cannot have them is "
    "refused ([identical offsets](identical-offsets.md))",
)
EVERY_TOPIC = ".*"
TOPICS = FerryKey(
    name="ferry.offsets.topics",
    default=EVERY_TOPIC,
    values="list of patterns",
    meaning="with `ferry.offsets = identical`: the source topics whose records keep their offsets; the flow's others "
    "are translated ([identical offsets](identical-offsets.md#some-topics))",
)
MAY_LOSE = FerryKey(
    name="ferry.offsets.may.lose",
    default="false",
    values="`true` or `false`",
    meaning="with `ferry.offsets = identical`: whether the target may be able to lose acknowledged records; for tests "
    "on one broker ([identical offsets](identical-offsets.md#what-the-target-needs))",
)

MAY_PASS = FerryKey(
    name="ferry.offsets.may.pass",
    default="false",
    values="`true` or `false`",
    meaning="with `ferry.offsets = identical`: whether a copy may begin with empty records, if the source's log does "
    "not begin at 0. The target's readers see them until they are deleted "
    "([identical offsets](identical-offsets.md#a-log-that-does-not-begin-at-0))",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdenticalSettings(FeatureSettings):
    """What the file says of offsets."""

    offsets: str = setting(OFFSETS, values.one_of((TRANSLATED, KEPT)))
    topics: PatternList = setting(TOPICS, values.pattern_list)  # noqa: RUF009 - declares a field
    """The source topics whose records keep their offsets, if any do."""
    may_lose: bool = setting(MAY_LOSE, values.boolean)
    """Whether a target that may lose acknowledged records is taken: records can then get other offsets."""

    may_pass: bool = setting(MAY_PASS, values.boolean)
    """Whether a copy may begin with empty records, which readers of the target can see until they are deleted."""

    where: str = ""
    """File, line and key of `ferry.offsets`; empty: it is at its default, or the file was not read."""

    @property
    def keeps(self) -> bool:
        """Whether records get the offsets that they have at the source, of some topics at least."""
        return self.offsets == KEPT

    def keeps_topic(self, policy: ReplicationPolicy, topic: str) -> bool:
        """Return whether the records of a source topic keep their offsets. Those of heartbeats never do."""
        return self.keeps and self.topics.matches(topic) and not is_heartbeats_topic(policy, topic)

    def keeps_as(self, other: IdenticalSettings) -> bool:
        """Return whether records of the same topics keep their offsets."""
        return self.keeps == other.keeps and (not self.keeps or {*self.topics.items} == {*other.topics.items})

    @property
    def passes(self) -> bool:
        """Whether a copy may begin with empty records."""
        return self.keeps and self.may_pass

    @property
    def least_slots(self) -> int:
        """Two with identical offsets: some topics stay translated, and a slot writes one kind of offsets."""
        return 2 if self.keeps else 1

    def placed(self, where: Callable[[str], str]) -> Self:
        """Return the settings with the place of `ferry.offsets`."""
        return replace(self, where=where(OFFSETS.name)) if self.keeps else self

    def refused(self, flow: FlowConfig) -> Mapping[str, str]:
        """Return why `ferry.offsets = identical` cannot be with other lines, such as transforms."""
        if not self.keeps:
            return {}
        if not self.topics.items:
            return {TOPICS.name: sentence("identical.file.topics")}
        why = self._against(flow)
        return {} if why is None else {OFFSETS.name: why}

    def _against(self, flow: FlowConfig) -> str | None:
        transforms = ", ".join(one.name for one in flow.records.transforms)
        merged = ", ".join(flow.topics.merge.items)
        guards = {name: getattr(flow.topics.guards, name) for name in PASSING}
        passing = ", ".join(
            f"ferry.guard.{name.replace('_', '.')} = {policy}" for name, policy in guards.items() if policy != FAIL
        )
        if transforms:
            return sentence("identical.file.transforms", names=transforms)
        if merged:
            return sentence("identical.file.merged", topics=merged)
        if flow.topics.sync_topic_deletes:
            return sentence("identical.file.deletes")
        if flow.copy.isolation_level != "read_committed":
            return sentence("identical.file.isolation")
        return sentence("identical.file.guards", guards=passing) if passing else None

    def reads_target_settings(self) -> str:
        """Return for what a run must read the settings of the target's topics and brokers; empty: it need not."""
        return f"to see whether records can have identical offsets ({OFFSETS.name})" if self.keeps else ""

    def refuse(self, flow: FlowConfig, act: str, topic: str | None = None) -> None:
        """Raise Refused if records keep their offsets: `act`, such as a command, does not support that.

        `topic`: it is about this source topic alone.
        """
        if self.keeps if topic is None else self.keeps_topic(flow.topics.policy, topic):
            raise Refused(sentence("identical.command", act=act, flow=str(flow.flow), where=self.where or OFFSETS.name))

    def refuse_back(self, back: FlowConfig, act: str, flow: FlowConfig) -> None:
        """Raise Refused if records of the flow back keep their offsets: clients that `act` moves could not return."""
        if self.keeps:
            where = self.where or OFFSETS.name
            raise Refused(sentence("identical.back", act=act, flow=str(flow.flow), back=str(back.flow), where=where))

    def refuse_return(self, flow: FlowConfig, act: str, back: FlowConfig) -> None:
        """Raise Refused if records keep their offsets: `act` brings clients along `back`, which does not keep them."""
        if self.keeps:
            where = self.where or OFFSETS.name
            raise Refused(sentence("identical.return", act=act, flow=str(flow.flow), back=str(back.flow), where=where))

    def refuse_reverse(self, flow: FlowConfig, back: FlowConfig) -> None:
        """Raise Refused if records keep their offsets: a switch would start the flow back, which does not keep them."""
        if self.keeps:
            where = self.where or OFFSETS.name
            raise Refused(sentence("identical.reverse", flow=str(flow.flow), back=str(back.flow), where=where))

    def deletes_target_records(self) -> str:
        """Return for what a run deletes records of the target's topics; empty: it does not."""
        return f"to delete the empty records before the first one ({MAY_PASS.name})" if self.passes else ""

    def writes_markers(self) -> str:
        """Return for what a run writes markers to the target's topics; empty: it does not."""
        if not self.keeps:
            return ""
        return (
            "to pass offsets without a record, of transactional producers; without it such a partition is refused there"
        )

    def digested(self) -> object | None:
        """Return what changes the copies; None at the default."""
        if not self.keeps:
            return None
        return KEPT if self.topics.items == (EVERY_TOPIC,) else [KEPT, *self.topics.items]
