"""Write src/ferry/config/keys/kafka_keys.json: every key that Kafka's own ConfigDefs define, with type and defaults.

Usage: python tools/kafka_keys.py [--check]. It asks the jars of Kafka 4.3.0; a test compares the file with them.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ferry.dev.jars import jars, java

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "src" / "ferry" / "config" / "keys" / "kafka_keys.json"
SOURCE = Path(__file__).with_name("KafkaKeys.java")
KAFKA = "4.3.0"
SECONDS = 120


def rendered() -> str:
    """Return the file's text from the jars: a line for each key, so that a new Kafka shows as a readable difference."""
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars(KAFKA)}/*", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    owners = json.loads(done.stdout)
    version = owners.pop("kafka")
    keys: dict[str, dict[str, Any]] = {}
    for owner, defined in owners.items():
        for name, (kind, default) in defined.items():
            key = keys.setdefault(name, {"type": kind, "defaults": {}})
            assert key["type"] == kind, f"{name} has two types"
            key["defaults"][owner] = default
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(keys[name])}" for name in sorted(keys))
    return f'{{\n "kafka": {json.dumps(version)},\n "keys": {{\n{lines}\n }}\n}}\n'


def main() -> int:
    """Write the file, or with --check report whether it agrees with the jars."""
    text = rendered()
    if "--check" in sys.argv[1:]:
        same = FILE.read_text() == text
        print(f"{FILE.relative_to(ROOT)} {'agrees' if same else 'does not agree'} with Kafka {KAFKA}")
        return 0 if same else 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
