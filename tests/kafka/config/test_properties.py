"""The parser against java.util.Properties: by table, by property, and by Java itself."""

import random

from ferry.config.text.properties import parse
from ferry.errors import BadInput
from tests.kafka.config.java_oracle import as_mapping, ask, encoded


def test_java_agrees_on_generated_texts(rng: random.Random) -> None:
    pieces = [*"ab=:#! \t\f\\\n\r", "\r\n", "\\\n", "\\u0041", "\\u00", "\\\\", "key", " = ", "é", "\\t", "\\ "]
    texts = ["".join(rng.choices(pieces, k=rng.randrange(40))) for _ in range(4000)]
    for text, answer in zip(texts, ask([f"properties {encoded(text)}" for text in texts]), strict=True):
        try:
            ours = {entry.key: entry.value for entry in parse(text, "f")}
        except BadInput:
            assert answer == "error", repr(text)
        else:
            assert answer != "error", repr(text)
            assert ours == as_mapping(answer), repr(text)
