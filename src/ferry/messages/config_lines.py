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
        "holds a single backslash, which is not part of the value read; write it twice if it is intended",
    ),
    "line.beside-connect": Entry(
        None,
        "is set together with {other}; keep one of the two",
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
        "is a key of MirrorMaker 1, and clusters is missing; let ferry migrate import-mm1 write the file",
    ),
    "line.clusters.mm1-key": Entry(
        None,
        "{what}, or let ferry migrate import-mm1 write it",
    ),
    "line.clusters.name": Entry(
        None,
        "alias {alias!r} is not a name; {names}",
    ),
    "line.clusters.none": Entry(
        None,
        "names no cluster; write for example clusters = primary, backup",
    ),
    "line.clusters.separator": Entry(
        None,
        "alias {alias!r} contains the replication.policy.separator {separator!r}, so names do not show where a topic "
        "came from; grant READ on ferry-ledger.* on both sides, or begin with an alias without it",
    ),
    "line.clusters.twice": Entry(
        None,
        "alias {alias!r} is listed twice; keep one",
    ),
    "line.comma": Entry(
        None,
        "has a comma with nothing before or after it, which Kafka refuses{remedy}",
    ),
    "line.comment": Entry(
        None,
        "the text after the value is not a comment but part of the value; {remedy}",
    ),
    "line.connection": Entry(
        None,
        "{why}; write for example {example}.{name} = ...",
    ),
    "line.loop": Entry(
        None,
        "a topic such as {topic!r} would come back through {back} and be copied again, so it is refused; "
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
        "is not a key of Ferry; {remedy}",
    ),
    "line.parameter.missing": Entry(
        None,
        "is missing, and the class needs it; write {key} = ...",
    ),
    "line.parameter.unknown": Entry(
        None,
        "is not a parameter of the class; {remedy}",
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
        "the value read is {value!r}: quotes are part of it, and match only themselves; write {line}",
    ),
    "line.records-skipped": Entry(
        None,
        "{what} {value} would be skipped, because record batches are copied as bytes; remove the line if records may "
        "arrive unchanged, or change them before or after Ferry",
    ),
    "line.reference.no-provider": Entry(
        None,
        "{said} names no provider, so the text is used literally; write ${{env:{name}}} for an environment variable",
    ),
    "line.reference.not-declared": Entry(
        None,
        "provider {name!r} is not declared, so its reference is used literally; use ${{env:...}}, ${{file:...}} or "
        "${{dir:...}}, or declare it in config.providers",
    ),
    "line.same-cluster": Entry(
        None,
        "{broker} is a broker of cluster {other!r} as well (line {line}), so {other!r} and {alias!r} are "
        "one cluster; no flow may go from a cluster to itself: correct one of the two",
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
        "changes nothing: write one of {ways}, or remove {name} from ferry.transforms",
    ),
    "line.transform.unknown": Entry(
        None,
        "names transform {name!r}, which no line defines; write {key} = payments, orders.* and what to do with them, "
        "for example ferry.transform.{name}.where, or remove the name",
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
        "conflicts with Airflow connection {conn_id!r} of line {other}; remove one of the two",
    ),
    "line.beside-connection.of-alias": Entry(
        None,
        "conflicts with Airflow connection {conn_id!r} of {reached}; remove one of the two",
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
        "class {written} is not known to Ferry, and would be skipped; use {known}, or an SQL expression of Spark in "
        "ferry.transform.NAME.sql",
    ),
    "line.client.differs": Entry(
        None,
        "differs from line {other}, which is used: {asked}; give that login the permissions of both, and remove this "
        "line",
    ),
    "line.client.not-used": Entry(
        None,
        "is not used: {asked}, and no line sets {name} for that client; write {alias}.{name}, and remove this line",
    ),
    "line.cluster": Entry(
        None,
        "cluster {alias!r} is not among clusters = {clusters}; add it there or remove the line",
    ),
    "line.comment.shown": Entry(
        None,
        "the value read is {value!r}: text after a value is part of it; {remedy}{how}",
    ),
    "line.continuous": Entry(
        None,
        "@continuous begins a run whenever one has ended, so no lag can start one; remove one of the two",
    ),
    "line.enabled": Entry(
        None,
        "enables no flow {where}; write {source}->{target}.enabled = {value}",
    ),
    "line.ferry-key-of-alias": Entry(
        None,
        "Ferry's keys are written at top level or after S->T., not after a cluster's alias",
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
        "{name} is {why}, and dead letters must not be mixed with other records; write another name",
    ),
    "line.no-class": Entry(
        None,
        "names {name}, which has no class; write {key}.type = {package}{example}, or another",
    ),
    "line.no-effect.acls": Entry(
        None,
        "has no effect while {switch} is false; remove the line, or set {switch} to true",
    ),
    "line.no-effect.beside-connect": Entry(
        None,
        "has no effect together with {key}, which only allows {others}; remove the line",
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
        "is not a key of Ferry, whose keys are in lower case; write {line}",
    ),
    "line.no-key.transform": Entry(
        None,
        "is not a key of a transform, which is written {prefix}NAME.KEY; {remedy}",
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
        "has no predicate to negate; write one, or remove the line",
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
    "line.provider.top-level": Entry(
        None,
        "has no effect here, because the file has one list of providers; write {name} = ... at top level",
    ),
    "line.repeated": Entry(
        None,
        "repeats line {other}; remove one of the two",
    ),
    "line.seconds": Entry(
        None,
        "{value} is read as milliseconds, which is in 1970; if seconds are intended, write {line}",
    ),
    "line.set-twice": Entry(
        None,
        "is set on line {other} to another value; keep one of the two",
    ),
    "line.spelt": Entry(
        None,
        "has no effect, because keys are in lower case; write {line}",
    ),
    "line.topics.empty": Entry(
        None,
        "is empty, so no topic is copied; write .* for all of them, or remove the line",
    ),
    # Several slips of one line that was corrected; `of` has their codes.
    "line.several": Entry(None, "{what}"),
    "line.torn": Entry(
        None,
        "ends in a backslash followed by a {what}, so the value does not continue: line {other} is read as a separate "
        "key; {remedy}",
    ),
    "line.transform.no-salt": Entry(
        None,
        "has no salt, and hashes without one can be found in tables; add {key} = "
        "${{file:/path:name}} or {key} = ${{env:NAME}}",
    ),
    "line.transform.idle": Entry(
        None,
        "{item} matches no topic of the flow ({topics}), so transform {name!r} changes none by it, and what it should "
        "hide would be copied unchanged; {meant}",
    ),
    "line.transform.no-topic": Entry(
        None,
        "names no topic, so transform {name!r} would change none; write {key} = payments, orders.*",
    ),
    "line.transform.of-connect": Entry(
        None,
        "belongs to Connect's {connect}, which no enabled flow has; write {owner}{connect} = ..., or remove it",
    ),
    "line.transform.poison-passes": Entry(
        None,
        "lets values that are not JSON through unmasked; write fail or skip if that matters",
    ),
    "line.transform.sql-and-function": Entry(
        None,
        "is set together with sql; a transform begins with one of the two: remove the other",
    ),
    "line.transform.unlisted": Entry(
        None,
        "belongs to transform {name!r}, which {list} lists for no enabled flow: it is not executed, and records are "
        "copied unchanged; add {name} to {owner}{list}{meant}, or remove {several}",
    ),
}
