"""What the wheel has in addition to the packages: the documents, and the manual pages, written when it is built."""

from __future__ import annotations

import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Documents(BuildHookInterface[Any]):
    """Writes the manual pages into a temporary folder, and names all files as shared data of the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Do so for a wheel; an editable installation has none."""
        if version != "standard":
            return
        root = Path(self.root)
        self._folder = TemporaryDirectory(prefix="ferry-man-")
        tool = runpy.run_path(str(root / "tools" / "man_pages.py"))
        shared = build_data["shared_data"]
        for file in tool["written"](Path(self._folder.name), root, self.metadata.version):
            shared[str(file)] = f"share/man/man1/{file.name}"
        for file in sorted((root / "docs").rglob("*.md")):
            shared[str(file)] = f"share/doc/ferry/{file.relative_to(root)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder again."""
        del build_data, artifact_path
        if version == "standard":
            self._folder.cleanup()
