"""Ferry's plugin, for an Airflow whose plugins folder is this one; a wheel names it as an entry point."""

from ferry_airflow.plugin import FerryPlugin

__all__ = ["FerryPlugin"]
