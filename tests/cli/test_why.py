"""`ferry plan --why` as a user starts it: no cluster is asked."""

from pathlib import Path

from tests.cli.program import warm_ferry as ferry

TEXT = """clusters = a, b
a.bootstrap.servers = nowhere.invalid:9092
b.bootstrap.servers = elsewhere.invalid:9092
a->b.enabled = true
topics = orders, audit-.*
topics.exclude = audit-old
"""


def test_the_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(TEXT)
    answer = ferry("plan", "--why", "audit-old", config=file)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0] == (
        "a->b leaves out topic audit-old: it is in topics.exclude "
        f"({file}:6: topics.exclude = audit-old, by its item audit-old)"
    )
    assert answer.out.splitlines()[1].startswith("a->b takes group audit-old: it is in groups")
    blank = ferry("plan", "--why", "", config=file)
    assert (blank.code, blank.out) == (2, "")
    assert "--why '': names nothing; give the name of a topic or a consumer group" in blank.err
    body = ferry("plan", "--why", "audit-new", "--json", config=file).json("plan-why")
    assert body["topic"] == {"taken": True, "reason": "is in topics", "key": "topics", "line": 5, "item": "audit-.*"}
    assert body["group"]["key"] == "groups"
