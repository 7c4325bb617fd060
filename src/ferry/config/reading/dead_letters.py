"""Connect's keys for records on which a transform fails: `errors.tolerance` and `errors.deadletterqueue.*`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.config.flow.dead_letters import CONTEXT, FACTOR, NAME, TOLERANCE, DeadLetters, usual_topic
from ferry.config.flow.transforms import Poison, TransformSpec
from ferry.config.keys import values
from ferry.config.keys.layers import Entries
from ferry.config.reading.findings import Findings, Setting
from ferry.config.text.filters import LEGAL_NAME, TopicSelection
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import Providers
from ferry.messages.catalogue import sentence
from ferry.model import Flow
from ferry.policy import ReplicationPolicy, copies_of, illegal_name

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterReader:
    """Reads the keys for one flow; adds problems to `findings`, and the origin of each value to `settings`."""

    flow: Flow
    entries: Entries
    providers: Providers
    findings: Findings
    settings: list[Setting] = field(default_factory=list)

    def poison(self) -> Poison:
        """Return what happens to poison where a transform does not set it.

        With `errors.tolerance = all` it goes to the dead letters; otherwise it fails.
        """
        tolerance = self._value(TOLERANCE, values.one_of(("none", "all")), "none")
        return Poison.SKIP if tolerance == "all" else Poison.FAIL

    def letters(
        self, transforms: Sequence[TransformSpec], selection: TopicSelection, policy: ReplicationPolicy
    ) -> DeadLetters:
        """Return the topic of dead letters; report a problem where the flow writes it for another purpose."""
        usual = usual_topic(self.flow.source)
        found = DeadLetters(
            topic=self._value(NAME, _topic, "") or usual,
            replication_factor=self._factor(),
            context=self._value(CONTEXT, values.boolean, "true"),
        )
        skips = any(one.poison is Poison.SKIP for one in transforms)
        for key in (NAME, FACTOR, CONTEXT):
            entry = self.entries.of_flow(self.flow, key)
            if entry is not None and not skips:
                message = sentence("line.letters.none", tolerance=TOLERANCE)
                self.findings.warn(entry, entry.key, message)
        named = [item for one in transforms for item in one.topics.items if LEGAL_NAME.fullmatch(item)]
        why = _not_free(found.topic, self.flow, selection, policy, named)
        if skips and why is not None:
            entry = self.entries.of_flow(self.flow, NAME)
            message = sentence("line.letters.topic", name=found.topic, why=why)
            self.findings.report(entry, NAME if entry is None else entry.key, message)
        return found

    def _factor(self) -> int | None:
        factor = self._value(FACTOR, values.replication_factor, "-1")
        return None if self.entries.of_flow(self.flow, FACTOR) is None else factor

    def _value(self, name: str, convert: Callable[[str], T], default: str) -> T:
        entry = self.entries.of_flow(self.flow, name)
        if entry is not None:
            self.settings.append(Setting.of(name, entry, default))
        return self.findings.read(entry, convert(default), convert, self.providers)


def _topic(text: str) -> str:
    name = text.strip()
    why = illegal_name(name) if name else None
    if why is not None:
        raise BadValue(sentence("value.topic", topic=name, why=why))
    return name


def _not_free(
    topic: str, flow: Flow, selection: TopicSelection, policy: ReplicationPolicy, named: Sequence[str]
) -> str | None:
    """Return what else the flow writes to a topic of the target; None: nothing.

    Transforms name the topics in `named`.
    """
    for upstream in (topic, policy.upstream_topic(topic), *named):
        if upstream and selection.takes(upstream) and topic in copies_of(policy, flow.source, upstream):
            return f"where the flow copies topic {upstream} to"
    own = (policy.checkpoints_topic(flow.source), policy.offset_syncs_topic(flow.source), policy.heartbeats_topic())
    if topic in own or topic.startswith(("ferry-ledger.", "ferry-delivery.")):
        return "a topic that Ferry reserves"
    return None
