"""What is wrong with a line of a configuration file, or which line is missing."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

LINES: Mapping[str, Entry] = {
    "line.reference": Entry(None, "{key}: {why}"),
    "line.alias": Entry(
        None,
        "clusters spells this alias {meant!r}; write {line}",
    ),
    "line.backslash": Entry(
        None,
        "the value read is {value!r}: \\{lone} is read as {read}, because one backslash escapes; write two: {line}",
    ),
    "line.backslash.alone": Entry(
        None,
        "holds a backslash alone, which is not part of the value read; write it twice where it is meant",
    ),
    "line.beside-connect": Entry(
        None,
        "stands beside {other}; keep one of both",
    ),
    "line.chunks": Entry(
        None,
        "chunks of {seconds} seconds do not fit twice into a transaction timeout of {timeout_ms} ms; "
        "lower ferry.chunk.seconds or raise ferry.transaction.timeout.ms",
    ),
    "line.clusters.comment": Entry(
        None,
        "alias {alias!r} is not a name; {names} (put a comment on a line of its own)",
    ),
    "line.clusters.mm1": Entry(
        None,
        "is a key of MirrorMaker 1, and clusters is missing; let ferry config import-mm1 write the file",
    ),
    "line.clusters.mm1-key": Entry(
        None,
        "{what}, or let ferry config import-mm1 write it",
    ),
    "line.clusters.name": Entry(
        None,
        "alias {alias!r} is not a name; {names}",
    ),
    "line.clusters.none": Entry(
        None,
        "names no cluster; write for example clusters = primary, backup",
    ),
    "line.clusters.twice": Entry(
        None,
        "alias {alias!r} is listed twice; keep one",
    ),
    "line.comma": Entry(
        None,
        "has a comma with nothing before or behind it, which Kafka refuses{remedy}",
    ),
    "line.comment": Entry(
        None,
        "what looks like a comment behind the value is read as a part of it; {remedy}",
    ),
    "line.connection": Entry(
        None,
        "{why}; write for example {example}.{name} = ...",
    ),
    "line.loop": Entry(
        None,
        "a topic such as {topic!r} would come back by {back} and be copied again, so it is refused; "
        "{rest}exclude it from one of the flows, or {remedy}",
    ),
    "line.missing": Entry(
        None,
        "is missing; add {line}",
    ),
    "line.no-effect.hash": Entry(
        None,
        "has no effect without hash or hash.key; remove the line",
    ),
    "line.no-flow": Entry(
        None,
        "no flow is enabled; add {example}.enabled = true",
    ),
    "line.no-key": Entry(
        None,
        "is no key of Ferry; {remedy}",
    ),
    "line.parameter.missing": Entry(
        None,
        "is missing, and the class needs it; write {key} = ...",
    ),
    "line.parameter.unknown": Entry(
        None,
        "is no parameter of the class; {remedy}",
    ),
    "line.provider.class": Entry(
        None,
        "provider class {name!r} is not supported; use one of {known}",
    ),
    "line.provider.no-class": Entry(
        None,
        "provider {name!r} has no class; add {key} = ...",
    ),
    "line.quotes": Entry(
        None,
        "the value read is {value!r}: quotes belong to it, and match themselves only; write {line}",
    ),
    "line.records-skipped": Entry(
        None,
        "{what} {value} would be skipped, because record batches are copied as bytes; remove the line "
        "where records may arrive as they are, or change them before or behind Ferry",
    ),
    "line.reference.no-provider": Entry(
        None,
        "{said} names no provider, so nothing is looked up and the text stands for itself; write "
        "${{env:{name}}} for an environment variable",
    ),
    "line.reference.not-declared": Entry(
        None,
        "provider {name!r} is not declared, so its reference is not looked up and stands for itself; use "
        "${{env:...}}, ${{file:...}} or ${{dir:...}}, or declare it in config.providers",
    ),
    "line.same-cluster": Entry(
        None,
        "{broker} is a broker of cluster {other!r} as well (line {line}), so {other!r} and {alias!r} are "
        "one cluster, and no flow may go from a cluster to itself; correct one of the two",
    ),
    "line.servers.missing": Entry(
        None,
        "is missing; add {key} = host:port",
    ),
    "line.top-level": Entry(
        None,
        "has no effect at top level; write {owner}.{role}.{name} for the cluster meant",
    ),
    "line.transform.nothing": Entry(
        None,
        "changes nothing: write one of {ways}, or take {name} out of ferry.transforms",
    ),
    "line.transform.unknown": Entry(
        None,
        "names transform {name!r}, of which no line says anything; write {key} = payments, orders.* and "
        "what becomes of them, as ferry.transform.{name}.where, or take the name out",
    ),
    "line.two-flows": Entry(
        None,
        "has no effect: it names two flows; {remedy}",
    ),
    "line.arrow": Entry(
        None,
        "the arrow of a flow is ->; write {line}",
    ),
    "line.beside-connection": Entry(
        None,
        "stands beside Airflow connection {conn_id!r} of line {other}; remove one of the two",
    ),
    "line.beside-connection.of-alias": Entry(
        None,
        "stands beside Airflow connection {conn_id!r} of {reached}; remove one of the two",
    ),
    "line.blank": Entry(
        None,
        "a blank ends the key; write {line} without blanks in the key",
    ),
    "line.blank-in-name": Entry(
        None,
        "no topic has a blank in its name, so {item!r} matches none; put a comma between two names",
    ),
    "line.class": Entry(
        None,
        "class {written} is not among those that Ferry knows, and would be skipped; there are {known}, "
        "and what Spark's SQL can say in ferry.transform.NAME.sql",
    ),
    "line.client.differs": Entry(
        None,
        "differs from line {other}, which counts: {asked}; let that one do what both may, and remove this line",
    ),
    "line.client.not-used": Entry(
        None,
        "is not used: {asked}, and no line says {name} of that one; write {alias}.{name}, and remove this line",
    ),
    "line.cluster": Entry(
        None,
        "cluster {alias!r} is not among clusters = {clusters}; add it there or remove the line",
    ),
    "line.comment.shown": Entry(
        None,
        "the value read is {value!r}: text behind a value belongs to it; {remedy}{how}",
    ),
    "line.continuous": Entry(
        None,
        "@continuous begins a run whenever one has ended, so no lag can start one; take one of both away",
    ),
    "line.enabled": Entry(
        None,
        "enables no flow {where}; write {source}->{target}.enabled = {value}",
    ),
    "line.ferry-key-of-alias": Entry(
        None,
        "Ferry's keys stand at top level or behind S->T., not behind a cluster's alias",
    ),
    "line.flow.cluster": Entry(
        None,
        "cluster {unknown!r} is not among clusters = {clusters}; {remedy}",
    ),
    "line.flow.same": Entry(
        None,
        "source and target are both {cluster!r}; a flow goes from one cluster to another",
    ),
    "line.letters.none": Entry(
        None,
        "is for dead letters, and no transform of the flow has any; write ferry.transform.NAME.poison = "
        "skip or {tolerance} = all, or remove the line",
    ),
    "line.letters.topic": Entry(
        None,
        "{name} is {why}, and dead letters may not lie among others' records; write another name",
    ),
    "line.no-class": Entry(
        None,
        "names {name}, which has no class; write {key}.type = {package}{example}, or another",
    ),
    "line.no-effect.acls": Entry(
        None,
        "has no effect while {switch} is false; remove the line, or set that one to true",
    ),
    "line.no-effect.beside-connect": Entry(
        None,
        "has no effect beside {key}, which takes {others}; remove the line",
    ),
    "line.no-effect.here": Entry(
        None,
        "has no effect here: {where}",
    ),
    "line.no-effect.instead": Entry(
        None,
        "has no effect; write {line}",
    ),
    "line.no-effect.kafka-4": Entry(
        None,
        "has no effect since Kafka 4; write {line}",
    ),
    "line.no-key.spelt": Entry(
        None,
        "is no key of Ferry, whose keys are spelt in small letters; write {line}",
    ),
    "line.no-key.transform": Entry(
        None,
        "is no key of a transform, which is written {prefix}NAME.KEY; {remedy}",
    ),
    "line.not-known": Entry(
        None,
        "is not known; neither Kafka nor Ferry reads it here: remove the line",
    ),
    "line.not-known.near": Entry(
        None,
        "is not known; did you mean {owner}{near}?",
    ),
    "line.predicate.none": Entry(
        None,
        "has no predicate to turn round; write one, or remove the line",
    ),
    "line.predicate.unknown": Entry(
        None,
        "names predicate {name!r}, which predicates does not list; {remedy}",
    ),
    "line.provider.not-declared": Entry(
        None,
        "provider {name!r} is not declared; add it to config.providers or remove the line",
    ),
    "line.provider.parameter": Entry(
        None,
        "provider {name!r} has no such parameter; known is {known}",
    ),
    "line.repeated": Entry(
        None,
        "repeats line {other}; remove one of the two",
    ),
    "line.seconds": Entry(
        None,
        "{value} is read as milliseconds, which is in 1970; where seconds are meant, write {line}",
    ),
    "line.set-twice": Entry(
        None,
        "is set on line {other} to another value; keep one of the two",
    ),
    "line.spelt": Entry(
        None,
        "has no effect, keys are spelt in small letters; write {line}",
    ),
    "line.topics.empty": Entry(
        None,
        "is empty, so no topic is copied; write .* for all of them, or remove the line",
    ),
    "line.torn": Entry(
        None,
        "ends in a backslash with a {what} behind it, so the value does not go on there: line {other} is "
        "read as a key of its own; {remedy}",
    ),
    "line.transform.no-salt": Entry(
        None,
        "has no salt, and hashes without one can be looked up in tables; add {key} = "
        "${{file:/path:name}} or {key} = ${{env:NAME}}",
    ),
    "line.transform.no-topic": Entry(
        None,
        "names no topic, so transform {name!r} would change none; write {key} = payments, orders.*",
    ),
    "line.transform.of-connect": Entry(
        None,
        "goes with Connect's {connect}, which no enabled flow has; write {owner}{connect} = ..., or remove it",
    ),
    "line.transform.poison-passes": Entry(
        None,
        "lets values that are no JSON through as they are, unmasked; write fail or skip where that counts",
    ),
    "line.transform.sql-and-function": Entry(
        None,
        "stands beside sql; a transform begins with one of both: remove the other",
    ),
    "line.transform.unlisted": Entry(
        None,
        "is of transform {name!r}, which {list} lists for no enabled flow: nothing of it is carried out, "
        "and records are copied as they are; add {name} to {owner}{list}{meant}, or remove {several}",
    ),
}
