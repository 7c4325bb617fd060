"""The registry of features: where the kernel finds their parts, which it imports by name.

The kernel uses no feature. `ferry doctor` and switches take the checks of other features from here. A feature that has
none of these parts, only commands of its own, needs no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """The parts of a feature, each as `module:name`; empty: it has no such part."""

    settings: str = ""
    """A class of settings, with its keys in the properties file (`ferry.config.keys.feature.FeatureSettings`)."""
    judging: str = ""
    """What it leaves out of each plan before the target's topics are claimed (`ferry.plan.parts.PlanPart`)."""
    preparing: str = ""
    """What it makes outside of the ledger when any run is planned, before the copy (`ferry.plan.parts.PlanPart`)."""
    planning: str = ""
    """What it does when a run of the whole flow is planned (`ferry.plan.parts.PlanPart`)."""
    port: str = ""
    """The port that copies its slices as bytes (`ferry.copy.kafka_slot.KafkaSlot`). `Slice.feature` says which."""
    doctor: str = ""
    """What `ferry doctor` checks of it for each flow (`ferry.lane.checks.FlowCheck`)."""
    readiness: str = ""
    """What `ferry readiness` and switches check of it (`ferry.lane.checks.ReadinessCheck`)."""
    sentences: str = ""
    """Its messages, by code (`ferry.messages.entry.Entry`)."""
    page: str = ""
    """What it answers to questions of the operator's page (`ferry.page.part.PageAnswer`), for the page's reader.

    Its pages and the starts of its DAGs are in the module of its name in `ferry_airflow.page.features`.
    """


IDENTICAL = "identical"
"""The feature that `Slice.feature` names for slices with a producer id."""

FEATURES: Mapping[str, Feature] = {
    IDENTICAL: Feature(
        settings="ferry.features.identical.settings:IdenticalSettings",
        judging="ferry.features.identical.acts.judging:identical_of_plan",
        port="ferry.features.identical.acts.slot:IdenticalSlot",
        readiness="ferry.features.identical.acts.late:check_late",
        sentences="ferry.features.identical.sentences:IDENTICAL",
    ),
    "acls": Feature(
        planning="ferry.features.acls.acts.sync:acls_of_plan",
        doctor="ferry.features.acls.acts.granted:check_grants",
        readiness="ferry.features.acls.acts.compared:check_acls",
        sentences="ferry.features.acls.sentences:ACLS",
    ),
    "evidence": Feature(page="ferry.features.evidence.acts.page:PAGE"),
    "groups": Feature(
        settings="ferry.features.groups.settings:GroupsSettings",
        sentences="ferry.features.groups.sentences:GROUPS",
        page="ferry.features.groups.acts.page:PAGE",
    ),
    "lanes": Feature(settings="ferry.features.lanes.settings:BackfillSettings"),
    "observe": Feature(settings="ferry.features.observe.settings:AlertSettings"),
    "records": Feature(
        settings="ferry.features.records.settings:RecordSettings", page="ferry.features.records.acts.page:PAGE"
    ),
    "switch": Feature(
        settings="ferry.features.switch.settings:SwitchSettings", sentences="ferry.features.switch.sentences:SWITCH"
    ),
}
"""The features by their folder in `ferry.features`, in the order in which parts are listed and act."""


def parts_of(kind: str) -> dict[str, Any]:
    """Import the part of one kind (the name of a field of Feature) of every feature that has it; by feature."""
    places = {name: str(getattr(feature, kind)) for name, feature in FEATURES.items()}
    return {name: imported(place) for name, place in places.items() if place}


def imported(place: str) -> Any:
    """Import a place, `module:name`. Raises ImportError or AttributeError when it is not there."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
