"""What `ferry doctor` checks of the Airflow of AIRFLOW_HOME: pools and connections of the file's flows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.words import count_of
from ferry_airflow.setup import HOME, HOME_IS_UNSET, missing_parts

CHECK = "airflow"


def checks(flows: Sequence[FlowConfig]) -> Iterator[tuple[str, bool | None, str]]:
    """Yield the check's name, whether it passed (None: not known), and a sentence, for each thing that is missing."""
    home = os.environ.get(HOME)
    if not home:
        yield CHECK, None, HOME_IS_UNSET
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
