"""What is wrong with an Airflow connection or a login of Kafka's clients."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

LOGINS: Mapping[str, Entry] = {
    "login.file.unreadable": Entry(None, "{what} cannot be read: {why}; {remedy}"),
    "login.endpoint": Entry(
        None,
        "{endpoint}: {why}",
    ),
    "login.endpoint-file": Entry(
        None,
        "{endpoint} is a file, which is only allowed in configuration files; name a token endpoint, or write the "
        "cluster's settings into the file",
    ),
    "login.half": Entry(
        None,
        "has only one of Login and Password; write both",
    ),
    "login.jaas": Entry(
        None,
        "{jaas}: {error}",
    ),
    "login.jaas.file": Entry(
        None,
        "JAAS file {path} of {kafka_opts}: {error}",
    ),
    "login.jaas.file-text": Entry(
        None,
        'is the text of a JAAS file; write its login module alone: module required name="value";',
    ),
    "login.jaas.java-property": Entry(
        None,
        "names the Java property ${{{name}}}, which is not set; write the value",
    ),
    "login.jaas.line-break": Entry(
        None,
        "has a line break before a closing quote; if ${{...}} reads the value from a file, write that file without a "
        "line break at its end, for example with printf %s",
    ),
    "login.jaas.no-end": Entry(
        None,
        "does not end with a semicolon; append ;",
    ),
    "login.jaas.no-module": Entry(
        None,
        "does not begin with a login module and 'required'; write module required name=\"value\";",
    ),
    "login.jaas.no-section": Entry(
        None,
        "has no section {section} (it has {named}); add {section} {{ ... }};",
    ),
    "login.jaas.option": Entry(
        None,
        'option {number} is not name="value"; put quotes around the value',
    ),
    "login.jaas.quote": Entry(
        None,
        "has a quote that is never closed; close it, and write a quote inside a value as {quote}",
    ),
    "login.jaas.section": Entry(
        None,
        "section {number} does not begin with a name and {{; write {section} {{ ... }};",
    ),
    "login.jaas.section-end": Entry(
        None,
        "section {name} does not end with }};; append the semicolon",
    ),
    "login.jaas.several": Entry(
        None,
        "holds more than one login module; Kafka clients allow one",
    ),
    "login.jaas.several-in-section": Entry(
        None,
        "has {modules} login modules in {section}; Kafka clients allow one",
    ),
    "login.jaas.unreadable": Entry(
        None,
        "{named} cannot be read: {reason}; correct the path or its permissions",
    ),
    "login.librdkafka": Entry(
        None,
        "{key!r} with this value is not understood in a connection of type kafka; remove it, or make a connection of "
        "the type kafka_cluster (Kafka cluster)",
    ),
    "login.librdkafka.no-servers": Entry(
        None,
        "{key} of its Extra is empty; write the bootstrap servers as host:port, separated by commas",
    ),
    "login.mechanism": Entry(
        None,
        "has a login that sasl.mechanism={mechanism} does not use; choose one of {mechanisms}, or remove "
        "the login and write {jaas}",
    ),
    "login.no-host": Entry(
        None,
        "Host is empty; write the bootstrap servers as host:port, separated by commas",
    ),
    "login.no-setting": Entry(
        None,
        "{key!r} is not a setting of a connection; Host holds the brokers, Extra holds security.protocol, ssl.* and "
        "sasl.*, and other client settings belong in the file",
    ),
    "login.no-text": Entry(
        None,
        "{key} is not a text; write one value",
    ),
    "login.none": Entry(
        None,
        "has no login; write Login and Password, or {jaas} for Kerberos: a JAAS file of {kafka_opts} is only used for "
        "clusters of the file",
    ),
    "login.path": Entry(
        None,
        "{name}={text} is not a path that connections may name; add it or its folder to {paths_variable} on the "
        "machines that use the connection",
    ),
    "login.protocol": Entry(
        None,
        "has a login that security.protocol={protocol} does not use; choose SASL_SSL, or remove it",
    ),
    "login.reference": Entry(
        None,
        "{key} holds a ${{...}} reference, which is only allowed in configuration files; write the value itself",
    ),
    "login.shown-key": Entry(
        None,
        "{key} would be shown by Airflow; put the key into a file and write ssl.keystore.location",
    ),
    "login.shown-password": Entry(
        None,
        "{key} with a password would be shown by Airflow; write it into Login and Password",
    ),
    "login.ticket-cache": Entry(
        None,
        "{jaas}: useTicketCache would use the tickets of this machine; name a cache with "
        'ticketCache="..." that {paths_variable} allows, or a keytab',
    ),
    "login.twice": Entry(
        None,
        "has a login and {jaas}; remove one of the two",
    ),
    "login.type": Entry(
        None,
        "is of type {type!r}; make it {wanted!r} (Kafka cluster) or 'kafka' (Apache Kafka)",
    ),
}
