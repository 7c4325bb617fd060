"""The wheel's provider data for Airflow: the connection type and its form, so that showing a form loads no Kafka.

The extra fields have Java's names: Extra reads like the lines of a configuration file.
"""

from __future__ import annotations

from typing import Any

HOOK = "ferry_airflow.connection.KafkaClusterHook"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
STORES = ("PEM", "PKCS12", "JKS")
PATH = (
    "A path below FERRY_CONNECTION_PATHS on the machines of Airflow's API server, workers and triggerer, and of "
    "Spark's drivers."
)


def get_provider_info() -> dict[str, Any]:
    """Return the provider by Airflow's `provider_info.schema.json`, with the newer `conn-fields`."""
    return {
        "package-name": "ferry-replicator",
        "name": "Ferry",
        "description": "Copies Kafka topics between clusters in bounded, audited, exactly-once micro-runs",
        "connection-types": [
            {
                "connection-type": "kafka_cluster",
                "hook-class-name": HOOK,
                "hook-name": "Kafka cluster",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema"],
                    "relabeling": {
                        "host": "Bootstrap servers",
                        "port": "Port of servers without one",
                        "login": "User (SASL)",
                        "password": "Password (SASL)",
                    },
                    "placeholders": {"host": "broker-1:9092, broker-2:9092", "login": "user, or OAuth client id"},
                },
                "conn-fields": _fields(),
            }
        ],
    }


def _fields() -> dict[str, Any]:
    fields = {
        "security.protocol": _choice("Security protocol", PROTOCOLS, "PLAINTEXT when nothing is chosen."),
        "sasl.mechanism": _choice("SASL mechanism", MECHANISMS, "GSSAPI when nothing is chosen."),
    }
    for store, holds in (("truststore", "certificates to trust"), ("keystore", "the client's key and certificates")):
        label = store.capitalize()
        fields[f"ssl.{store}.location"] = _text(f"{label} location", f"File with {holds}. {PATH}")
        fields[f"ssl.{store}.type"] = _choice(f"{label} type", STORES, "JKS when nothing is chosen.")
        fields[f"ssl.{store}.password"] = _secret(f"{label} password")
    return fields | {
        "ssl.key.password": _secret("Key password"),
        "sasl.kerberos.service.name": _text(
            "Kerberos service name", "The brokers' principal without host, often kafka."
        ),
        "sasl.oauthbearer.token.endpoint.url": _text(
            "Token endpoint",
            "Where OAUTHBEARER gets its tokens: an address that -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls of"
            " KAFKA_OPTS lists.",
        ),
        "sasl.jaas.config": _text(
            "JAAS configuration",
            "Instead of user and password, for Kerberos with a keytab below FERRY_CONNECTION_PATHS. Never a password:"
            " Airflow would show it.",
        ),
    }


def _text(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"]}}


def _secret(label: str) -> dict[str, Any]:
    return {"label": label, "schema": {"type": ["string", "null"], "format": "password"}}


def _choice(label: str, values: tuple[str, ...], description: str) -> dict[str, Any]:
    # Every value needs its label: the form shows null's for those without.
    labels = {"null": "not set", **{value: value for value in values}}
    schema = {"type": ["string", "null"], "enum": [None, *values], "values_display": labels}
    return {"label": label, "description": description, "schema": schema}
