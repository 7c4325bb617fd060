"""Connect's classes of headers, its filter and its predicates, against Kafka's own, by the same file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ferry.dev.jars import jars, java
from tests.oracle import Oracle
from tests.spark.notebook import changed_alone

FILE = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
PACKAGE = "org.apache.kafka.connect.transforms."
Headers = Sequence[tuple[str, bytes | None]]

CLASSES = st.one_of(
    st.tuples(
        st.just("InsertHeader"),
        st.fixed_dictionaries(
            {"header": st.sampled_from(["x", "origin"]), "value.literal": st.sampled_from(["west", "5", "true", "a b"])}
        ),
    ),
    st.tuples(st.just("DropHeaders"), st.fixed_dictionaries({"headers": st.sampled_from(["x", "x, y", "none"])})),
    st.tuples(st.just("Filter"), st.just(dict[str, str]())),
)
PREDICATES = st.one_of(
    st.tuples(st.just("HasHeaderKey"), st.fixed_dictionaries({"name": st.sampled_from(["x", "y"])})),
    st.tuples(st.just("RecordIsTombstone"), st.just(dict[str, str]())),
    st.tuples(
        st.just("TopicNameMatches"),
        st.fixed_dictionaries({"pattern": st.sampled_from(["a.*", "a[.]clicks", "clicks", "(?i)A.ORDERS", ".*s"])}),
    ),
)
RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["orders", "clicks"]),
        st.none() | st.binary(max_size=3),
        st.lists(st.tuples(st.sampled_from(["x", "y", "Ü"]), st.none() | st.binary(max_size=3)), max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@cache
def oracle() -> Oracle:
    source = Path(__file__).with_name("HeadersOracle.java")
    return Oracle([java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(source)])


def hexed(data: str | bytes | None) -> str:
    """A word of the oracle's: - for nothing, . for what is empty."""
    return "-" if data is None else (data.encode() if isinstance(data, str) else data).hex() or "."


def data_of(word: str) -> bytes | None:
    return None if word == "-" else bytes.fromhex(word.strip("."))


def parsed(answer: str) -> list[tuple[str, bytes | None]] | None:
    """The headers of a record that is kept; None: it is not."""
    if answer == "ok gone":
        return None
    word = answer.removeprefix("ok kept ")
    pairs = (one.split(":") for one in word.split(",")) if word != "-" else ()
    return [((data_of(name) or b"").decode(), data_of(value)) for name, value in pairs]


@given(made=CLASSES, test=st.none() | PREDICATES, negate=st.booleans(), records=RECORDS)
def test_headers_filters_and_predicates_are_kafkas(
    made: tuple[str, dict[str, str]],
    test: tuple[str, dict[str, str]] | None,
    negate: bool,
    records: list[tuple[str, bytes | None, Headers]],
) -> None:
    (kind, own), (name, asked) = made, test or ("-", {})
    lines = {"type": f"{PACKAGE}{kind}", **own}
    text = f"{FILE}transforms = t\n"
    if test is not None:
        lines |= {"predicate": "p", "negate": str(negate).lower()}
        text += f"predicates = p\npredicates.p.type = {PACKAGE}predicates.{name}\n"
        text += "".join(f"predicates.p.{key} = {value}\n" for key, value in asked.items())
    text += "".join(f"transforms.t.{key} = {value}\n" for key, value in lines.items())
    rows = [(topic, 0, at, 7, 0, b"k", value, list(headers)) for at, (topic, value, headers) in enumerate(records)]
    found = changed_alone(text, rows)
    assert found is not None
    headers_of = {row["offset"]: row["headers"] for row in found}
    parameters = [f"{key}={hexed(value)}" for key, value in own.items()]
    parameters += [f"p.{key}={hexed(value)}" for key, value in asked.items()]
    answers = oracle().ask(
        [
            " ".join(
                [
                    *(kind, name, str(negate and test is not None).lower(), hexed(f"a.{topic}"), hexed(value)),
                    ",".join(f"{hexed(key)}:{hexed(header)}" for key, header in headers) or "-",
                    *parameters,
                ]
            )
            for topic, value, headers in records
        ]
    )
    assert [headers_of.get(at) for at in range(len(records))] == [parsed(answer) for answer in answers]
