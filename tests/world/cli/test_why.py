"""`ferry plan --explain` as a user starts it: no cluster is asked."""

from pathlib import Path

from tests.golden import Golden
from tests.program import warm_ferry as ferry

TEXT = """clusters = a, b
a.bootstrap.servers = nowhere.invalid:9092
b.bootstrap.servers = elsewhere.invalid:9092
a->b.enabled = true
topics = orders, audit-.*
topics.exclude = audit-old
"""


def test_the_line_is_named(tmp_path: Path, golden: Golden) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(TEXT)
    answer = ferry("plan", "--explain", "audit-old", config=file)
    assert (answer.code, answer.err) == (0, "")
    golden(answer.out, "a topic and a group")
    blank = ferry("plan", "--explain", "", config=file)
    assert (blank.code, blank.out) == (2, "")
    golden(blank.err, "no name")
    body = ferry("plan", "--explain", "audit-new", "--json", config=file).json("plan-why")
    assert body["topic"] == {"taken": True, "reason": "is in topics", "key": "topics", "line": 5, "item": "audit-.*"}
    assert body["group"]["key"] == "groups"
