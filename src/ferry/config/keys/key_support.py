"""The fate of each key of MirrorMaker 2: used, not acted on, not needed, or refused, and why.

The rules are in groups: keys of a flow (or of the top level), of Connect's worker, and of the three clients. The first
rule whose expression matches the whole name counts. A rule matches every key of Kafka's ConfigDefs (tested).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

Group = Literal["flow", "worker", "consumer", "producer", "admin"]


class Fate(Enum):
    """What Ferry does with a key."""

    USED = "used"
    NOT_YET = "not acted on"
    """The key is read and checked, and its value kept; no run acts on it so far."""
    UNNEEDED = "not needed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The fate of the keys that `name` matches; `text` is the meaning of a key that is read, else the reason."""

    name: re.Pattern[str]
    fate: Fate
    text: str


def _rules(*rows: tuple[str, Fate, str]) -> tuple[Rule, ...]:
    return tuple(Rule(name=re.compile(name), fate=fate, text=text) for name, fate, text in rows)


_USED, _NOT_YET, _UNNEEDED, _REFUSED = Fate.USED, Fate.NOT_YET, Fate.UNNEEDED, Fate.REFUSED

_NO_REST = "Ferry starts no Connect worker, so there is no REST server"
_NO_WORKER = "Ferry starts no Connect worker; Airflow and the ledger do its work"
_NO_CONNECT_TOPICS = "Ferry keeps no state in Connect's topics; the ledger on the target holds it"
_NO_CONVERTERS = "record batches are copied as bytes, so nothing is converted"
_NO_METRICS = "metrics of Java clients; Ferry reports what each run did"
_NO_MEMBERSHIP = "Ferry joins no consumer group: a plan names the offsets to copy"
_CHANGES = "the class may change records, but batches are copied as bytes, so it would have no effect"
_CONVERTER = "batches are copied as bytes; a class other than `ByteArrayConverter` would change records: it is refused"
NO_SUCH_CLIENT = "Ferry reaches the source as its consumer and the target as its producer; it has no other client"
_FOR_ACLS = "with `ferry.sync.acls.policy = full` the setting also selects the ACLs of groups"
_NO_RECORDS = "record batches are copied as bytes: no record is read or built on the way"

SECURITY = _rules(
    (r"security\.protocol", _USED, "how the connections are protected and who logs in"),
    (r"ssl\.(truststore|keystore)\..*|ssl\.key\.password", _USED, "certificates and keys of the TLS connections"),
    (r"ssl\.endpoint\.identification\.algorithm", _USED, "`https` checks the broker's host name; empty does not"),
    (r"ssl\.(cipher\.suites|enabled\.protocols)", _USED, "which TLS is spoken; a value Python cannot keep is refused"),
    (r"ssl\.protocol", _USED, "the newest TLS that is spoken; a value Python cannot keep is refused"),
    (r"ssl\.(provider|trustmanager\.algorithm)", _USED,
     "Java's own is known, and OpenSSL does the same; another one is refused"),
    (r"ssl\.(secure\.random\.implementation|keymanager\.algorithm)", _UNNEEDED,
     "how Java builds its TLS; Python's is OpenSSL"),
    (r"ssl\.engine\.factory\.class", _REFUSED, "a Java class cannot build Python's TLS connections"),
    (r"ssl\.client\.auth", _UNNEEDED, _NO_REST),
    (r"sasl\.(mechanism|jaas\.config)", _USED, "how to log in, and as whom"),
    (r"sasl\.kerberos\.service\.name", _USED, "the first part of the brokers' Kerberos principals"),
    (r"sasl\.kerberos\..*", _UNNEEDED, "tickets come from the keytab or the cache when a connection needs one"),
    (r"sasl\.(client|login)\.callback\.handler\.class|sasl\.login\.class", _USED,
     "Kafka's own handlers are known; another Java class is refused"),
    (r"sasl\.login\.refresh\..*", _UNNEEDED, "a token is asked for when a connection needs one"),
    (r"sasl\.login\.(connect|read)\.timeout\.ms|sasl\.login\.retry\..*", _UNNEEDED,
     "a token endpoint that fails is tried again with the connection"),
    (r"sasl\.oauthbearer\.(jwks\..*|expected\..*|clock\.skew\.seconds|(scope|sub)\.claim\.name)", _UNNEEDED,
     "the brokers check tokens, a client only sends them"),
    (r"sasl\.oauthbearer\..*", _USED, "where login tokens come from; what is not supported is refused"),
)  # fmt: skip

_CONNECTION = _rules(
    (r"bootstrap\.servers", _USED, "the brokers to ask first"),
    (r"bootstrap\.controllers", _REFUSED, "Ferry speaks to brokers; write bootstrap.servers"),
    (r"client\.id", _USED, "sent with every request, so that quotas and broker logs know the flow"),
    (r"client\.dns\.lookup", _USED, "which addresses of a name are tried"),
    (r"request\.timeout\.ms", _USED, "how long a request waits for its response"),
    (r"reconnect\.backoff\.ms", _USED, "how long to wait before a broker is connected to again"),
    (r"reconnect\.backoff\.max\.ms", _USED, "longest wait before a broker is connected to again"),
    (r"connections\.max\.idle\.ms", _USED, "how long a connection without requests stays open"),
    (r"metadata\.max\.age\.ms", _USED, "how old metadata may be before it is read again"),
    (r"socket\.connection\.setup\.timeout\.ms", _USED, "how long the first attempt to connect may take"),
    (r"socket\.connection\.setup\.timeout\.max\.ms", _USED, "longest time for an attempt to connect"),
    (r"(send|receive)\.buffer\.bytes", _USED, "the socket's buffer; -1: what the system gives"),
    (r"default\.api\.timeout\.ms|retries|retry\.backoff(\.max)?\.ms", _UNNEEDED,
     "attempts are bounded by the run's patience and `ferry.retries`"),
    (r"metadata\.recovery\..*", _UNNEEDED,
     "a run that finds no broker ends; the next one begins with bootstrap.servers"),
    (r"metric\.reporters|metrics\..*|enable\.metrics\.push", _UNNEEDED, _NO_METRICS),
    (r"security\.providers", _UNNEEDED, "Java's security providers; Python's TLS is OpenSSL"),
    (r"config\.providers", _USED, "names of config providers; env, file and dir need no line"),
)  # fmt: skip

_FLOW = _rules(
    (r"clusters", _USED, "the aliases of the clusters"),
    (r"enabled", _USED, "whether the flow exists; only the flow's own line counts"),
    (r"topics", _USED, "the topics to copy: Java regular expressions, of which one must match the whole name"),
    (r"topics\.exclude", _USED, "topics that are left out again"),
    (r"groups", _USED,
     f"the consumer groups whose offsets are translated: Java regular expressions; {_FOR_ACLS}"),
    (r"groups\.exclude", _USED, f"groups that are left out again; {_FOR_ACLS}"),
    (r"config\.properties\.exclude", _USED, "topic configurations that are not taken over"),
    (r"use\.defaults\.from", _USED, "whose default counts where a source topic sets no value of its own"),
    (r"replication\.policy\.class", _USED, "how topics are named at the target"),
    (r"replication\.policy\.separator", _USED, "the text between alias and topic"),
    (r"replication\.policy\.internal\.topic\.separator\.enabled", _USED,
     "whether internal topics use the separator too"),
    (r"replication\.factor", _USED, "replicas of topics that Ferry creates; -1: the target's default"),
    (r"(checkpoints|heartbeats|offset-syncs)\.topic\.replication\.factor", _USED,
     "replicas of this internal topic when Ferry creates it; -1: the cluster's default"),
    (r"offset-syncs\.topic\.location", _USED, "on which cluster the topic of offset syncs is kept"),
    (r"offset\.lag\.max", _UNNEEDED, "the ledger holds every segment of the offset map, not samples"),
    (r"sync\.topic\.configs\..*", _USED,
     "whether topics keep the source's configuration, in every run (a negative interval: no)"),
    (r"sync\.topic\.acls\..*", _USED, "whether, and how often at most, topics take over the source's ACLs"),
    (r"sync\.group\.offsets\.enabled", _USED,
     "whether translated group offsets are written to groups without members at the target; " + _FOR_ACLS),
    (r"sync\.group\.offsets\..*", _USED,
     "every run writes group offsets, and `ferry.groups.schedule` between runs; a negative interval: no run does"),
    (r"refresh\.topics\..*", _NOT_YET,
     "whether, and how often at most, Ferry searches for new topics of the source; each run does"),
    (r"refresh\.groups\..*", _USED,
     "whether every run searches for new groups; if not, or with a negative interval, those of the first remain"),
    (r"emit\.checkpoints\..*", _USED,
     "whether, and how often at most, checkpoints are written in MirrorMaker 2's format"),
    (r"emit\.heartbeats\..*", _USED,
     "whether, and how often at most, heartbeats are written in MirrorMaker 2's format"),
    (r"emit\.offset-syncs\..*", _USED, "whether offset syncs are written in MirrorMaker 2's format, after each run"),
    (r"heartbeats\.replication\.enabled", _USED, "whether heartbeat topics are copied whatever `topics` says"),
    (r"tasks\.max", _USED, "most Spark tasks of a run"),
    (r"tasks\.max\.enforce", _UNNEEDED, "`tasks.max` always holds"),
    (r"(topic|group|config\.property)\.filter\.class", _USED,
     "Kafka's own filter is known; another Java class is refused"),
    (r"forwarding\.admin\.class", _USED, "Kafka's own class is known; another Java class is refused"),
    (r"transforms", _USED, "changes on the way, by [classes of Connect](transforms.md#connects-transforms)"),
    (r"predicates", _USED, "conditions that select the records of a [transform](transforms.md#connects-transforms)"),
    (r"(key|value|header)\.converter", _UNNEEDED, _CONVERTER),
    (r"(key|value|header)\.converter\.plugin\.version", _UNNEEDED, _NO_CONVERTERS),
    (r"(source|target)\.cluster\.alias", _UNNEEDED, "the flow's name says it"),
    (r"name|connector\.(class|plugin\.version)", _UNNEEDED, "MirrorMaker sets it for its connectors"),
    (r"admin\.timeout\.ms|consumer\.poll\.timeout\.ms", _UNNEEDED, "a run's patience bounds each request"),
    (r"metric\.names\.formats?", _UNNEEDED, _NO_METRICS),
    (r"errors\.tolerance", _USED,
     "`all`: what [a transform](transforms.md#poison) cannot be applied to becomes a dead letter, unless it says so"),
    (r"errors\..*|config\.action\.reload", _UNNEEDED,
     "a run that meets an error refuses the partition, and says so; the next run tries again"),
    (r"exactly\.once\.support|transaction\.boundary(\.interval\.ms)?|offsets\.storage\.topic", _UNNEEDED,
     "each chunk is one transaction with its positions and receipts; `ferry.chunk.*` bound it"),
    (r"topic\.creation\.groups", _UNNEEDED, "topics are created like their sources"),
    (r"dedicated\.mode\.enable\.internal\.rest|listeners|rest\..*|access\.control\..*|response\.http\..*", _UNNEEDED,
     _NO_REST),
)  # fmt: skip

_WORKER = _rules(
    (r"exactly\.once\.source\.support", _USED, "Ferry is always exactly once, whatever is set"),
    (r"(config|offset|offsets|status)\.(storage|flush)\..*", _UNNEEDED, _NO_CONNECT_TOPICS),
    (r"(key|value|header)\.converter", _UNNEEDED, _CONVERTER),
    (r"(key|value|header)\.converter\.plugin\.version", _UNNEEDED, _NO_CONVERTERS),
    (r"admin\.listeners|listeners|rest\..*|access\.control\..*|response\.http\..*|inter\.worker\..*", _UNNEEDED,
     _NO_REST),
    (r"group\.id|connect\.protocol|worker\..*|(scheduled\.)?rebalance\..*|plugin\..*|connector\.client\..*", _UNNEEDED,
     _NO_WORKER),
    (r"session\.timeout\.ms|heartbeat\.interval\.ms|topic\.(creation|tracking)\..*|task\.shutdown\..*", _UNNEEDED,
     _NO_WORKER),
)  # fmt: skip

_CONSUMER = _rules(
    (r"isolation\.level", _USED, "`read_committed` unless set: what transactions aborted is not copied"),
    (r"auto\.offset\.reset", _USED, "where the first run begins (`earliest` unless set); `ferry.start` wins"),
    (r"client\.rack", _USED, "sent with each fetch, so that a near replica may answer"),
    (r"fetch\.(max\.bytes|min\.bytes|max\.wait\.ms)|max\.partition\.fetch\.bytes", _USED,
     "bounds of a fetch; when absent, the engine chooses"),
    (r"check\.crcs", _UNNEEDED, "checksums are always checked"),
    (r"interceptor\.classes", _REFUSED, _CHANGES),
    (r"(key|value)\.deserializer|max\.poll\.records", _UNNEEDED, _NO_RECORDS),
    (r"exclude\.internal\.topics", _UNNEEDED, "internal topics are never copied"),
    (r"allow\.auto\.create\.topics", _UNNEEDED, "nothing is read that the plan has not seen"),
    (r"group\..*|(session\.timeout|heartbeat\.interval|max\.poll\.interval)\.ms|partition\.assignment\..*", _UNNEEDED,
     _NO_MEMBERSHIP),
    (r"enable\.auto\.commit|auto\.commit\.interval\.ms|share\..*|internal\.throw\..*", _UNNEEDED, _NO_MEMBERSHIP),
)  # fmt: skip

_PRODUCER = _rules(
    (r"compression\.type", _USED, "batches in another compression are transcoded; if absent, each keeps the source's"),
    (r"compression\..*\.level", _USED, "how hard the codec tries that `compression.type` names; else without effect"),
    (r"max\.request\.size", _USED, "bound of a produce request; when absent, the engine chooses"),
    (r"delivery\.timeout\.ms", _UNNEEDED, "what is not written is tried again until ferry.transaction.timeout.ms"),
    (r"acks|enable\.idempotence", _UNNEEDED, "all replicas in sync always acknowledge, in order and once"),
    (r"batch\.size|linger\.ms|partitioner\..*", _UNNEEDED,
     "the source's batches are copied as they are, to the partition of the same number"),
    (r"buffer\.memory|max\.block\.ms|metadata\.max\.idle\.ms|max\.in\.flight\.requests\.per\.connection", _UNNEEDED,
     "`ferry.task.memory.bytes` bounds what is held and under way"),
    (r"interceptor\.classes", _REFUSED, _CHANGES),
    (r"(key|value)\.serializer", _UNNEEDED, _NO_RECORDS),
    (r"transactional\.id", _UNNEEDED, "the id is made of flow, lane and slot"),
    (r"transaction\.timeout\.ms", _UNNEEDED, "`ferry.transaction.timeout.ms` says it"),
    (r"transaction\.two\.phase\.commit\.enable", _UNNEEDED, "a chunk is committed in one phase"),
)  # fmt: skip

RULES: dict[Group, tuple[Rule, ...]] = {
    "flow": _FLOW + SECURITY + _CONNECTION,
    "worker": _WORKER + SECURITY + _rules(
        (r"(client\.(id|dns\.lookup)|.*\.ms|(send|receive)\.buffer\.bytes)", _UNNEEDED,
         "clients of Connect's worker; write {alias}.consumer., .producer. or .admin. for the clients that copy"),
    ) + _CONNECTION,
    "consumer": _CONSUMER + SECURITY + _CONNECTION,
    "producer": _PRODUCER + SECURITY + _CONNECTION,
    "admin": _rules((r".*", _UNNEEDED, NO_SUCH_CLIENT)),
}  # fmt: skip


def rule_of(group: Group, name: str) -> Rule | None:
    """Return the first rule of the group that matches `name`."""
    return next((rule for rule in RULES[group] if rule.name.fullmatch(name)), None)
