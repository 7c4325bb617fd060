"""Write docs/keys.md: every key of MirrorMaker 2 with what Ferry does with it, as `ferry config explain` shows it.

Usage: python tools/key_table.py [--check]. Ferry's own keys have their table in docs/configuration.md.
"""

import sys
from pathlib import Path

from ferry.config.explain import Explanation, every_key

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "keys.md"
HEAD = """\
# MirrorMaker 2 keys

What each key of Kafka 4.3.0 does here; `ferry config explain KEY` says the same of one, `ferry config check FILE` of
those in a file. A key that is *not acted on* is read and checked, and has no effect. One that is *not needed* may stay
in the file. One that is *refused* has to go: to leave it out in silence would change what is copied. The default is
Ferry's, or Kafka's of a key that is not used. Written by `tools/key_table.py` from the ConfigDefs in Kafka's jars.
"""
PLACES = {
    "": "at top level or after `S->T.`",
    "S->T.": "at top level or after `S->T.`",
    "{alias}.": "after `{alias}.`",
    "{alias}.consumer.": "of the consumer",
    "{alias}.producer.": "of the producer",
    "{alias}.admin.": "of the admin client",
}


def rendered() -> str:
    """Return the whole page."""
    sections: dict[str, list[Explanation]] = {}
    for one in every_key():
        if not one.name.startswith("ferry."):
            sections.setdefault(_heading(one), []).append(one)
    parts = [HEAD]
    for heading, keys in sections.items():
        rows = "".join(_row(one) for one in keys)
        parts.append(f"## {heading}\n\n| key | default | here | meaning, or why not |\n|---|---|---|---|\n{rows}")
    return "\n".join(parts)


def _heading(one: Explanation) -> str:
    if len(one.places) > 2 and one.places[1] == "{alias}.":
        return "Keys of a cluster: at top level, after `{alias}.`, or `S->T.source.cluster.` and `S->T.target.cluster.`"
    return f"Keys {PLACES[one.places[0]]}"


def _row(one: Explanation) -> str:
    default = f"`{one.default}`".replace("|", "\\|") if one.default else ""
    if one.kafkas_default is not None:
        default = f"{default or 'no default'} (MirrorMaker 2: `{one.kafkas_default}`)"
    return f"| `{one.name}` | {default} | {one.fate} | {one.text} |\n"


def main() -> int:
    """Write the page, or with --check report whether it is up to date."""
    if "--check" in sys.argv[1:]:
        same = FILE.read_text() == rendered()
        print(f"{FILE.relative_to(ROOT)} is {'up to date' if same else 'out of date'}")
        return 0 if same else 1
    FILE.write_text(rendered())
    return 0


if __name__ == "__main__":
    sys.exit(main())
