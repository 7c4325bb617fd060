"""What Ferry's triggers share: Airflow keeps their arguments in its database, and makes them again from these."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.triggers.base import BaseTrigger


class KeptTrigger(BaseTrigger):
    """A trigger whose fields are its arguments. No secret is among them: those are resolved where it runs."""

    arguments: ClassVar[tuple[str, ...]]
    """The names of its arguments, which are its fields."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return class and arguments, as Airflow keeps them in its database."""
        kept = {name: getattr(self, name) for name in self.arguments}
        return f"{type(self).__module__}.{type(self).__qualname__}", kept
