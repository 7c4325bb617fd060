"""Ferry's plugin, for an Airflow whose plugins folder is this one.

A wheel, and an installation of the checkout, name the plugin as an entry point. Where Ferry is installed as well,
nothing is here: Airflow shows an import error for a plugin that it finds twice.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="ferry"):
    from ferry_airflow.plugin import FerryPlugin  # noqa: F401 - Airflow reads it here
