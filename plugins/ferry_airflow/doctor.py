"""What `ferry doctor` checks of the Airflow of AIRFLOW_HOME: pools and connections of the file's flows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.words import count_of
from ferry_airflow.setup import missing_parts

CHECK = "airflow"
HOME = "AIRFLOW_HOME"
REMEDY = "set it to the home of the Airflow that runs the flows, and ask again"


def checks(flows: Sequence[FlowConfig]) -> Iterator[tuple[str, bool | None, str]]:
    """Yield the check's name, whether it passed (None: not known), and a sentence, for each thing that is missing."""
    home = os.environ.get(HOME)
    if not home:
        yield CHECK, None, f"{HOME} is not set here, so pools and connections were not checked: {REMEDY}"
        return
    try:
        missing = missing_parts(flows)
    except Refused as error:
        yield CHECK, False, str(error)
        return
    for sentence in missing:
        yield CHECK, False, sentence
    if not missing:
        yield CHECK, True, f"the pools and connections of {count_of(len(flows), 'flow')} are in the Airflow of {home}"
