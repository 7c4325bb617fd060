"""Which line wins, against MirrorMaker 2's own classes."""

import random

from ferry.config.keys.layers import ROLES, SIDES
from tests.kafka.config.java_oracle import as_mapping, ask, encoded
from tests.pure.config.test_layers import effective

NAMES = (
    "bootstrap.servers",
    "security.protocol",
    "ssl.protocol",
    "fetch.max.bytes",
    "linger.ms",
    "retries",
    "client.rack",
)
PREFIXES = (
    "",
    *(f"{role}." for role in ROLES),
    *(f"{side}.{role}." for side in SIDES for role in ROLES),
    *(f"{side}.cluster." for side in SIDES),
)


def test_mirror_maker_agrees_on_every_precedence(rng: random.Random) -> None:
    places = [f"{owner}{prefix}" for owner in ("", "a.", "b.", "a->b.") for prefix in PREFIXES]
    keys = [f"{place}{name}" for place in places for name in NAMES]
    cases = []
    for _ in range(5):
        chosen = {"clusters": "a, b", "a->b.enabled": "true"}
        # Values differ by place, so that the winner shows.
        chosen |= {key: str(number) for number, key in enumerate(rng.sample(keys, rng.randrange(60, 300)))}
        # These are checked by Connect itself when it reads the flow.
        chosen |= {key: "SSL" for key in ("security.protocol", "a->b.security.protocol") if key in chosen}
        text = "".join(f"{key} = {value}\n" for key, value in chosen.items())
        cases += [(text, side, role) for side in SIDES for role in ROLES]
    answers = ask([f"client {encoded(text)} a b {side} {role}" for text, side, role in cases])
    added_by_java = {"client.id", "enable.auto.commit", "auto.offset.reset"}
    for (text, side, role), answer in zip(cases, answers, strict=True):
        theirs = {name: value for name, value in as_mapping(answer).items() if name not in added_by_java}
        assert effective(text, side, role) == theirs, (side, role, text)
