"""A write block on a standby cluster: ACLs that deny WRITE, which a switch takes away where it is told to."""

from __future__ import annotations

import pytest

from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.features.switch.acts.switcher import Switcher
from ferry.model.switch import Step, SwitchOptions, Verb
from tests.harness import Lab, new_alias
from tests.kafka.security.conftest import Pair
from tests.kafka.security.test_acl_sync import acls_of, add
from tests.kafka.security.test_logins import fill
from tests.tiers import ANSWER_S


def test_a_switch_deletes_just_the_denials_of_write_on_its_own_topics(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    alias = new_alias()
    lab = Lab(
        source=secured.source.cluster,
        target=secured.target.cluster,
        alias=alias,
        topics=(topic,),
        settings={f"t{alias}->{alias}.enabled": "true"},
    )
    lab.micro_run()
    apps = f"User:apps-{topic}"
    blocks = {f"deny {apps} WRITE on topic {alias}.{topic}", f"deny {apps} WRITE on topic {topic}"}
    others = {
        f"deny {apps} WRITE on topic {topic}*",
        f"deny {apps} WRITE on topic other-{topic}",
        f"deny {apps} READ on topic {topic}",
        f"allow {apps} WRITE on topic {topic}",
    }
    add(secured.target, topic, blocks | others)

    settings = parse_settings(lab.text, "lab.properties")
    with Switcher(settings, lab.flow, Verb.FAILOVER, who="ann@desk-7", patience_s=ANSWER_S) as switcher:
        switcher.open("s-1", SwitchOptions(remove_write_block=True), "bob")
        with pytest.raises(BadInput, match="--remove-write-block"):
            switcher.run("s-1")
    asked = Switcher(settings, lab.flow, Verb.FAILOVER, who="ann@desk-7", remove_write_block=True, patience_s=ANSWER_S)
    with asked as switcher:
        state = switcher.run("s-1")
    assert acls_of(secured.target, topic) == others
    assert len(state.fact(Step.PROMOTE, "removed_acls")) == len(blocks), "the ledger has what was taken away"
