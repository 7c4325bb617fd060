"""Hostile inputs for the readers of texts and messages: answers of brokers and token endpoints, files, rows, fields."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment

from ferry.config.flow.rule_text import parse_rule, rule_text, spark_of
from ferry.config.flow.start import parse_start
from ferry.config.login.environment import from_environment
from ferry.config.login.jaas import parse_jaas
from ferry.config.login.jks import Damaged, WrongPassword, read_jks
from ferry.config.login.stores import tls_options
from ferry.config.settings import load
from ferry.config.text.json_path import parse_path
from ferry.config.text.problem import BadValue
from ferry.errors import FerryError
from ferry.features.archive.acts.exported import read_export
from ferry.features.archive.rules.export import Digest, Exported, ExportHead, head_line, record_line
from ferry.features.evidence.rules.chain import is_index
from ferry.features.evidence.rules.codec import SealedReport, decode_report, encode_report
from ferry.features.observe.settings import json_object
from ferry.features.records.rules.json_edit import NotJson, edited, only_fields, redacted, tree_of
from ferry.features.sink.rules import codec as deliveries
from ferry.features.sink.rules.batch_state import last_known, standing
from ferry.kafka.connect import oauth
from ferry.kafka.connect.refusal import LoginFailed
from ferry.kafka.groups import listing
from ferry.model import Fate, LedgerRecord, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, KnownBatches, Settled, TargetShape
from ferry.plan.gather import position_of
from ferry.run.spark.stage import parse_rows
from tests.kafka.security.pki import Authority
from tests.pure.decide.test_hostile_ledger import DOCUMENTED, mutated
from tests.pure.decide.test_rule_text import EVERY_STEP, spec
from tests.pure.mm1.setups import converted
from tests.pure.net import hostile_answers
from tests.pure.reports.values import EVIDENCE
from tests.pure.wire.hostile import flipped

CHECKOUT = Path(__file__).parents[3]
DECLARED = (FerryError, LoginFailed, BadValue, NotJson, Damaged, WrongPassword, *hostile_answers.DECLARED)
"""What these readers raise, beside the errors of Ferry."""

Case = tuple[str, Callable[[], object], bytes]
"""The reader's name, what lets it read, and what is shown of the input."""

_REPORT = encode_report(SealedReport(number=1, evidence=EVIDENCE, previous=None, signer=None))
_RULE = rule_text(spec(steps=EVERY_STEP), "4.2.0")
_INDEX = json.dumps({"reports": [{"name": "report-000001.json", "number": 1}]}).encode()
_TOKEN = {"access_token": "e30.eyJleHAiOjE3fQ.x", "expires_in": 300, "token_type": "Bearer"}
_CONNECTION = {
    "conn_type": "kafka_cluster", "host": "b:9092", "port": 9092, "login": "ferry", "password": "p",
    "extra": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.truststore.type": "PEM"},
}  # fmt: skip
_JAAS = b'KafkaClient { a.b.PlainLoginModule required username="u" password="a\\"b" debug=true; // x\n };'
_VALUE = {"card": {"number": "4711", "more": [1, 2.5, None, True]}, "name": "\N{SNOWMAN}", "list": [{"number": "x"}]}
_MM1 = b"zk.connect=zoo:2181/kafka\nbootstrap.servers=west:9092\ngroup.id=mirror\nssl.keystore.password=x\n"
_STARTS = (b"earliest", b"latest", b"2026-01-31T06:00:00Z", b"orders:0=5, orders:1=7")
_FAILED = {"kind": "Superseded", "message": "x", "code": "superseded.slot", "facts": {"run": "r", "attempt": 2}}
_ROWS = (
    (0, "receipt", json.loads(next(one.value or b"" for one in DOCUMENTED if one.key.startswith(b'["receipt"')))),
    (0, "end", {"refusals": [], "retries": 0, "time_over": False, "failure": _FAILED, "slot": 0}),
)


@cache
def _examples() -> tuple[bytes, ...]:
    """The configuration files that the documents have, and that of the containers."""
    texts = [text for page in sorted((CHECKOUT / "docs").glob("*.md")) for text in _blocks(page.read_text())]
    return (*(text.encode() for text in texts), (CHECKOUT / "docker" / "flows.properties").read_bytes())


@cache
def _certificate() -> bytes:
    return Authority.create("fuzzed").own.certificate_pem


def _blocks(page: str) -> list[str]:
    return [text for text in re.findall(r"```properties\n(.*?)```", page, re.DOTALL) if "clusters" in text]


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """An input for each reader; files are written to `folder`."""
    yield from _answers(rng)
    yield from _documents(rng)
    yield from _files(rng, folder)
    yield from _fields(rng)
    yield from _rows(rng)


def _json(golden: object, rng: random.Random) -> bytes:
    """JSON with one thing in it that is otherwise, in its bytes now and then; or so deep that no reader takes it."""
    if rng.random() < 0.02:
        return b"[" * 100_000
    data = json.dumps(mutated(golden, rng)).encode()
    return flipped(data, rng) if rng.random() < 0.3 else data


def _answers(rng: random.Random) -> Iterator[Case]:
    for _ in range(8):
        name, kind = rng.choice(hostile_answers.requests())
        request = hostile_answers.asked(kind, rng.randrange(kind.min_version, kind.max_version + 1))
        data = hostile_answers.made_up(request, rng)
        for one in (data, flipped(data, rng)):
            shown = f"{name} v{request.API_VERSION} ".encode() + one
            yield "answers of brokers", partial(hostile_answers.read, request, one), shown
    part = ConsumerProtocolAssignment.TopicPartition(topic="orders", partitions=[0, 1, 2])
    owned = flipped(bytes(ConsumerProtocolAssignment(assigned_partitions=[part], user_data=b"").encode(version=1)), rng)
    yield "assignments of members", partial(listing._owned, owned), owned
    token = _json(_TOKEN, rng)
    yield "token endpoints", partial(oauth._parsed, token, "https://x/token"), token


def _documents(rng: random.Random) -> Iterator[Case]:
    for data in (_json(json.loads(_REPORT), rng), flipped(_REPORT, rng), _json(mutated(json.loads(_REPORT), rng), rng)):
        yield "reports", partial(decode_report, data, "report-000001.json"), data
    index = _json(json.loads(_INDEX), rng)
    yield "lists of reports", partial(is_index, index), index
    rule = _json(json.loads(_RULE), rng).decode(errors="replace")
    yield "rules of transforms", lambda: (parse_rule(rule, ()), spark_of(rule)), rule.encode()
    head = ExportHead(flow="a->b", topic="t", cluster_id="c", at_ms=1)
    digest, lines = Digest(), [digest_free(head_line(head), rng)]
    digest.add(lines[0])
    for at, one in enumerate(rng.sample(DOCUMENTED, 5)):
        lines.append(digest.add(digest_free(record_line(Exported(offset=at, record=one)), rng)))
    lines.append(digest_free(digest.end_line(5), rng))
    shown = b"\n".join(lines)
    yield "exports of ledgers", partial(read_export, Path("x"), lambda _: iter(lines)), shown


def digest_free(line: bytes, rng: random.Random) -> bytes:
    """A line that is otherwise now and then, before its digest is taken: whoever can write the file can do that."""
    return _json(json.loads(line), rng) if rng.random() < 0.3 else line


def _files(rng: random.Random, folder: Path) -> Iterator[Case]:
    text, file = flipped(rng.choice(_examples()), rng), folder / "flows.properties"
    file.write_bytes(text)
    yield "flows files", partial(load, file), text
    connection = _json(_CONNECTION, rng).decode(errors="surrogateescape").replace("\0", "")
    with patch.dict("os.environ", {"AIRFLOW_CONN_FUZZED": connection}):
        yield "connections", partial(from_environment, "fuzzed"), connection.encode(errors="replace")
    jaas = flipped(_JAAS, rng)
    yield "JAAS", partial(parse_jaas, jaas.decode(errors="replace")), jaas
    store = flipped(_jks(rng), rng)
    yield "JKS", partial(read_jks, store, rng.choice([None, "changeit"])), store
    pem, place = (flipped if rng.random() < 0.8 else lambda same, _: same)(_certificate(), rng), folder / "ca.pem"
    place.write_bytes(pem)
    trusted = {"ssl.truststore.location": str(place), "ssl.truststore.type": "PEM"}
    yield "PEM", partial(tls_options, trusted), pem
    old = flipped(_MM1, rng).decode(errors="replace")
    yield "MirrorMaker 1", partial(converted, "--whitelist", "a|b", consumers=(old,)), old.encode()


def _jks(rng: random.Random) -> bytes:
    """A store of one certificate, whose bytes are none."""
    der = rng.randbytes(60)
    entry = struct.pack(">IH", 2, 2) + b"ca" + bytes(8) + struct.pack(">H", 5) + b"X.509"
    return struct.pack(">III", 0xFEEDFEED, 2, 1) + entry + struct.pack(">I", len(der)) + der + bytes(20)


def _fields(rng: random.Random) -> Iterator[Case]:
    start = flipped(rng.choice(_STARTS), rng).decode(errors="replace")
    yield "starts", partial(parse_start, start), start.encode()
    alert = _json({"slack_webhook_conn_id": "x"}, rng).decode(errors="replace")
    yield "arguments of alerts", partial(json_object, alert), alert.encode()
    position = _json({"source_next": 5, "generation": 1, "v": 1}, rng).decode(errors="replace")
    yield "positions", partial(position_of, 5, position), position.encode()
    value = _json(_VALUE, rng)
    tree = tree_of([parse_path("$.card.number"), parse_path("$.list[*].number")])
    yield "values of records", partial(edited, value, tree, redacted("x")), value
    yield "values of records", partial(only_fields, value, frozenset({"card"}), {"name": "n"}), value


def _rows(rng: random.Random) -> Iterator[Case]:
    rows = [(slot, kind, _json(body, rng).decode(errors="replace")) for slot, kind, body in _ROWS]
    yield "rows of Spark", partial(parse_rows, rows), "\n".join(body for _, _, body in rows).encode()
    place = TopicPartition("t", 0)
    settled = Settled(topics={"t": TargetShape(partitions=2, topic_id="id")}, due={place: Due(3, 5)})
    receipt = DeliveryReceipt(place=place, done=Due(3, 5), first=10, last=14, slot=0, generation=0)
    known = KnownBatches(upto=3, written=frozenset({1, 2}), begun=frozenset({7}), forgotten=0)
    made = [
        deliveries.attempt_record("a", 7, 2, 0, "host"),
        deliveries.fenced_record(0, 2, known),
        deliveries.settled_record(7, settled),
        deliveries.receipt_record(7, receipt),
        deliveries.delivered_record(7, settled, [receipt], 1),
        deliveries.forgotten_record(1),
    ]
    records = []
    for at, one in enumerate(made):
        key = _json(json.loads(one.key), rng) if rng.random() < 0.2 else one.key
        body = one.value and (_json(json.loads(one.value), rng) if rng.random() < 0.3 else one.value)
        fate = rng.choice([Fate.COMMITTED, Fate.COMMITTED, Fate.OPEN, Fate.ABORTED])
        records.append(LedgerRecord(offset=at, key=key, value=body, fate=fate, producer_id=1))
    shown = b"\n".join(one.key + b" " + (one.value or b"") for one in records)
    yield "ledgers of applications", partial(standing, records, 7, "the ledger"), shown
    yield "known batches", partial(last_known, records, "the ledger"), shown
