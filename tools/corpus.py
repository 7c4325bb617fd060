"""Write Ferry's current answers next to their questions: on property files, in plans, and in JSON.

Usage: python tools/corpus.py. Run it only when answers change on purpose; read the diff.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.pure.answers.stories import KEPT, texts
from tests.pure.config.kept_answers import CORPUS, answers
from tests.pure.decide.kept_plans import PLANS, plans

WRITTEN: Mapping[Path, Callable[[], Mapping[Path, str]]] = {CORPUS: answers, PLANS: plans, KEPT: texts}
"""The function that makes the texts of the files in each folder."""


def main() -> int:
    """Write all answers, and remove those of files that are gone."""
    for folder, made in WRITTEN.items():
        wanted = made()
        for path in {path for path in folder.rglob("*") if path.suffix in {".json", ".jsonl"}} - wanted.keys():
            path.unlink()
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
