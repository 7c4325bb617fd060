"""Config providers against Kafka's own: what is looked up, and what is not allowed."""

from pathlib import Path

from ferry.config.reading.examine import examine
from tests.kafka.config.java_oracle import as_mapping, ask, encoded
from tests.pure.config.test_providers import BASE, folder

__all__ = ["folder"]  # a fixture


def test_kafka_looks_up_the_same(folder: Path) -> None:
    values = [
        "${file:FOLDER/values.properties:topics}",
        "x${file:FOLDER/values.properties:long},${dir:FOLDER:plain}y",
        "${file:FOLDER/values.properties:colon}",
        "${env:HOME}",
        "${dir:FOLDER:plain}${dir:FOLDER:plain}",
        "$HOME",
    ]
    texts = [f"{BASE}groups = {value.replace('FOLDER', str(folder))}\n" for value in values]
    for text, answer in zip(texts, ask([f"flow {encoded(text)} a b" for text in texts]), strict=True):
        examined = examine(text, "f")
        assert examined.problems == (), text
        assert ",".join(examined.flows[0].groups.filter.include.items) == as_mapping(answer)["groups"], text
