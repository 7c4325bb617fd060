"""A reader that keeps its offsets in a file, as Flink keeps them in a checkpoint.

    python -m tests.kafka.identical.bookmark BOOTSTRAP TOPIC PARTITIONS FILE

It reads from the offsets of the file on, in no group. What it has processed is in the file, too: both are replaced at
once, so a reader that is killed and begun again, on whichever cluster, continues with what the file has.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

EACH = 20
"""Records between two checkpoints."""
PAUSE_S = 0.002
"""How long a record takes: a reader that is killed is amid the stream."""

State = dict[str, list[str]]
"""What was processed, in order, by partition; its number is the next offset, because logs have no holes."""


def state_of(file: Path) -> State:
    """The newest checkpoint."""
    found: State = json.loads(file.read_text()) if file.exists() else {}
    return found


def checkpoint(file: Path, state: State) -> None:
    """Replace the checkpoint at once."""
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(state))
    draft.replace(file)


def read_on(bootstrap: str, topic: str, partitions: int, file: Path) -> None:
    """Read until the process is killed."""
    state = {str(number): rows for number in range(partitions) for rows in [state_of(file).get(str(number), [])]}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not used",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, int(number), len(rows)) for number, rows in state.items()])
    new = 0
    while True:
        message = consumer.poll(0.2)
        error = None if message is None else message.error()
        if message is not None and error is None:
            rows, value = state[str(message.partition())], message.value()
            assert message.offset() == len(rows), "the offset of the checkpoint is that of the next record"
            assert isinstance(value, bytes)
            rows.append(value.decode())
            new += 1
            time.sleep(PAUSE_S)
        elif error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if new >= EACH or (new and message is None):
            checkpoint(file, state)
            new = 0


if __name__ == "__main__":
    read_on(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
