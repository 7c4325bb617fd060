"""What a plan needs to know of a flow's transforms: their digests, and the rules that are lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.rule_text import parse_rule, spark_of
from ferry.config.flow.transforms import Poison
from ferry.errors import BadInput, Refused
from ferry.messages.catalogue import sentence
from ferry.model import Era
from ferry.plan.transform_digest import pyspark_version, transform_digest
from ferry.words import several


def lost_rules(flow: FlowConfig, eras: Mapping[str, Era], digests: Mapping[str, str]) -> dict[str, str]:
    """Return by target topic why its repartition rule cannot be carried out any more, as half a sentence.

    Only rules that the file has since replaced are checked, because slices begun by the old rule are finished by it.
    Without `digests` nothing is checked.
    """
    found: dict[str, str] = {}
    for target, era in eras.items() if digests else ():
        wish = flow.transform_of(era.source_topic)
        if wish is None or digests.get(wish.name) == era.digest:
            continue
        try:
            now = transform_digest(parse_rule(era.spec, flow.records.transforms))
        except (BadInput, Refused) as error:
            found[target] = str(error)
            continue
        if now != era.digest:
            found[target] = (
                "PySpark, Ferry, the module of its function or its salt is another one than then: bring back what it "
                f"was, for one run{spark_of(era.spec)}"
            )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTransforms:
    """A flow's transforms for a plan that is only shown: digests, why some are lost, notes on what is not known."""

    digests: Mapping[str, str]
    lost: Mapping[str, str]
    notes: tuple[str, ...] = ()


def transforms_to_show(flow: FlowConfig, *, here: bool) -> ShownTransforms:
    """Return the transforms as a run that is planned on this machine would find them.

    Which command or DAG will run is not known, but each refuses a transform whose digest the machine that plans cannot
    make. `ferry run` and `ferry run --spark` plan where `ferry plan` is called, so the plan refuses the same topics.
    The page's process plans no run (`here` is False): without PySpark it adds a note on what it does not know.
    """
    if here or not flow.records.transforms or pyspark_version():
        digests, lost = transform_digests(flow)
        return ShownTransforms(digests=digests, lost=lost)
    names = several(sorted(one.name for one in flow.records.transforms))
    note = sentence("transform.not-known", names=names)
    return ShownTransforms(digests={}, lost={}, notes=(note,))


def without_letters(flow: FlowConfig) -> frozenset[str]:
    """Return the digests of the flow's transforms that make no dead letters, as far as they are known here."""
    digests, _ = transform_digests(flow)
    return frozenset(
        digests[one.name] for one in flow.records.transforms if one.name in digests and one.poison is not Poison.SKIP
    )


def transform_digests(flow: FlowConfig) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests of a flow's transforms by name; and by name why others cannot run here, as a sentence."""
    digests: dict[str, str] = {}
    lost: dict[str, str] = {}
    for one in flow.records.transforms:
        try:
            digests[one.name] = transform_digest(one)
        except (BadInput, Refused) as error:
            lost[one.name] = str(error)
    return digests, lost
