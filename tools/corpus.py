"""Write what Ferry says of the property files in tests/pure/config/corpus, beside each of them.

Usage: python tools/corpus.py. Only when a change of answers is intended; read the diff.
"""

import sys

from tests.pure.config.kept_answers import (
    CORPUS,
    DEFAULTS,
    EXPLAINED,
    defaults,
    explained,
    files,
    render,
    said_of,
    text_of,
)


def main() -> int:
    """Write all answers, and remove those of files that are gone."""
    wanted = {DEFAULTS: defaults(), EXPLAINED: explained()}
    wanted |= {path.with_suffix(".json"): said_of(text_of(path)) for path in files()}
    for path in {*CORPUS.rglob("*.json")} - wanted.keys():
        path.unlink()
    for path, said in wanted.items():
        path.write_text(render(said), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
