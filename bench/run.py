"""All benchmarks, one table each; `--json FILE` keeps the figures. Exits 1 when a CPU figure misses its target.

Throughput on a shared machine moves with the neighbours, so it is reported and not gated.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import latency, machines_http, ready, shapes_http, sqs_http, waits_http
from bench.table import Row, show
from tasuki.values.documents import dumps

PARTS = {
    "start": ready,
    "sqs": sqs_http,
    "machines": machines_http,
    "shapes": shapes_http,
    "waits": waits_http,
    "latency": latency,
}


def main() -> int:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args()
    unknown = set(asked.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {min(unknown)}; there are {', '.join(PARTS)}")
    found: dict[str, list[Row]] = {}
    for name, part in PARTS.items():
        if not asked.parts or name in asked.parts:
            found[name] = part.rows()
            show(name, found[name])
    if asked.json:
        asked.json.write_text(dumps({k: [[r.what, r.value, r.unit] for r in v] for k, v in found.items()}) + "\n")
    missed = [
        r.what for part in found.values() for r in part if "CPU" in r.what and r.ratio is not None and r.ratio < 1
    ]
    if missed:
        print("missed:", ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
