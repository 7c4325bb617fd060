"""ACLs on the wire: the words for Kafka's numbers."""

from __future__ import annotations

import re
from enum import Enum

import pytest
from kafka.protocol.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ACLResourceType

from ferry.kafka.admin import acls


@pytest.mark.parametrize(
    ("known", "theirs"),
    [
        (acls.TYPES, ACLResourceType),
        (acls.PATTERNS, ACLResourcePatternType),
        (acls.OPERATIONS, ACLOperation),
        (acls.PERMISSIONS, ACLPermissionType),
    ],
)
def test_the_words_are_those_of_kafka(known: dict[int, str], theirs: type[Enum]) -> None:
    """kafka-python's numbers, but for UNKNOWN, ANY and MATCH, which no ACL has; and two that are younger than it."""
    numbers = {member.name: member.value for member in theirs if member.name not in ("UNKNOWN", "ANY", "MATCH")}
    words = {re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", word).upper(): code for code, word in known.items()}
    assert numbers.items() <= words.items()
    assert words.keys() - numbers.keys() <= {"USER", "TWO_PHASE_COMMIT"}


def test_a_word_that_ferry_does_not_know_is_its_number() -> None:
    assert acls.word_of(acls.OPERATIONS, 99) == "number-99"
