"""The effective values of a flow, against MirrorMaker 2's own three connectors."""

import random

from ferry.config.effective import DEPARTURES
from ferry.config.keys.catalogue import keys_of
from ferry.config.keys.values import items
from ferry.config.reading.examine import examine
from ferry.model import Flow
from tests.kafka.config.java_oracle import as_mapping, ask, encoded

FLOW = Flow(source="a", target="b")
BASE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
CHOICES = {
    "topics": ["foo.*, bar", "x"],
    "topics.exclude": ["y.*", ".*z,w"],
    "groups": ["g.*", "h, i"],
    "groups.exclude": ["console-.*"],
    "config.properties.exclude": ["retention.ms"],
    "use.defaults.from": ["source"],
    "replication.policy.separator": ["_"],
    "replication.policy.internal.topic.separator.enabled": ["false", "FALSE"],
    "heartbeats.replication.enabled": ["false"],
    "replication.factor": ["3", "-1"],
    "offset-syncs.topic.location": ["target"],
    "offset-syncs.topic.replication.factor": ["1"],
    "checkpoints.topic.replication.factor": ["2"],
    "heartbeats.topic.replication.factor": ["5"],
    "sync.topic.configs.enabled": ["false"],
    "sync.topic.configs.interval.seconds": ["7"],
    "sync.topic.acls.enabled": ["false"],
    "sync.topic.acls.interval.seconds": ["-1"],
    "sync.group.offsets.enabled": ["true", "false"],
    "sync.group.offsets.interval.seconds": ["9"],
    "refresh.topics.enabled": ["false"],
    "refresh.topics.interval.seconds": ["11"],
    "refresh.groups.enabled": [" true"],
    "refresh.groups.interval.seconds": ["12"],
    "emit.checkpoints.enabled": ["false"],
    "emit.checkpoints.interval.seconds": ["13"],
    "emit.heartbeats.enabled": ["false"],
    "emit.heartbeats.interval.seconds": ["14"],
    "emit.offset-syncs.enabled": ["false"],
    "tasks.max": ["4"],
}


def plain(text: str) -> str:
    joined = ",".join(items(text))
    return joined.lower() if joined.lower() in ("true", "false") else joined


def test_mirror_maker_agrees_on_every_value_and_default(rng: random.Random) -> None:
    # Each key once for sure; then what chance brings together.
    texts = [BASE, BASE + "\n".join(f"{name} = {values[0]}" for name, values in CHOICES.items())]
    for _ in range(3):
        lines = [
            f"{owner}{name} = {rng.choice(values)}"
            for name, values in CHOICES.items()
            for owner in ("", "a->b.")
            if rng.random() < 0.5
        ]
        texts.append(BASE + "\n".join(rng.sample(lines, len(lines))))
    compared: set[str] = set()
    for text, answer in zip(texts, ask([f"flow {encoded(text)} a b" for text in texts]), strict=True):
        theirs = as_mapping(answer)
        examined = examine(text, "f")
        assert examined.problems == (), text
        for setting in examined.settings[FLOW]:
            departs = setting.line is None and setting.name in {name for name, _, _ in DEPARTURES}
            if setting.name in theirs and not departs:
                compared.add(setting.name)
                assert plain(setting.value) == plain(theirs[setting.name]), (setting, text)
    # The filter of topic configurations reads this one itself.
    assert set(CHOICES) - {"use.defaults.from"} <= compared
    assert set(CHOICES) <= set(keys_of("flow"))
