"""The form of the connection type "Kafka cluster" as a user meets it: in a browser."""

from __future__ import annotations

import json

from ferry_airflow.provider import get_provider_info
from tests.airflow import planted
from tests.airflow.browser import browser
from tests.airflow.conftest import Flows
from tests.clusters import USER

MADE = "kafka_by_hand"
DIALOG = "//*[@role='dialog']"
TOLD = "//*[@data-scope='toast' and @data-part='root' and contains(., 'Test Connection')]"
ROW = f"//tr[.//*[normalize-space()='{MADE}']]"


def test_a_connection_made_in_the_form_works(flows: Flows) -> None:
    (kind,) = get_provider_info()["connection-types"]
    host, _, port = flows.source.bootstrap_of("SASL").partition(":")
    with browser() as page:
        page.open(flows.home, "/connections")
        page.press("Add Connection")
        page.write("Connection ID", MADE)
        page.choose("Connection Type", "Kafka cluster")
        named = kind["ui-field-behaviour"]["relabeling"]
        assert {*named.values(), "Description"} <= set(page.labels())
        assert "Schema" not in page.labels()
        page.write(named["host"], host)
        page.write(named["port"], port)
        page.write(named["login"], USER)
        page.write(named["password"], planted.SECRETS["connection"])

        page.press("Extra Fields")
        page.choose("Security protocol", "SASL_PLAINTEXT")
        page.choose("SASL mechanism", "PLAIN")
        page.write("Key password", planted.SECRETS["key password"])
        fields = {field["label"]: field["schema"] for field in kind["conn-fields"].values()}
        assert [label for label in page.labels() if label in fields] == list(fields)
        hidden = {label for label, schema in fields.items() if schema.get("format") == "password"}
        assert {label for label in fields if page.kind(label) == "password"} == hidden
        page.press("Save", within=DIALOG)
        page.gone(DIALOG)

        page.press("Test Connection", within=ROW)
        said = page.one(TOLD).inner_text()
        assert "Test Connection Successful" in said
        assert f"brokers {host}:{port}" in said
        assert not planted.found([("page", page.page.content().encode())])
    kept = flows.rest.ask("GET", f"/api/v2/connections/{MADE}")
    assert (kept["conn_type"], kept["host"], kept["port"], kept["login"]) == ("kafka_cluster", host, int(port), USER)
    set_fields = {key: value for key, value in json.loads(kept["extra"]).items() if value is not None}
    assert set_fields == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "ssl.key.password": "***",
    }
