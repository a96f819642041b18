"""klinic audit-reward beside reward-doctor: which exploits each finds in functions with planted holes, and how long it takes.

python benchmarks/audit.py --doctor PATH/reward-doctor [--also FILE.py:FUNCTION]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOLES = Path(__file__).parents[1] / "tests" / "rewards" / "holes.py"
NAMES = ("last_number", "any_listed", "lenient", "judge", "tags", "strict_tag", "strict_boxed")


def rows(place: Path) -> Path:
    draw = random.Random(0)
    told = []
    for _ in range(40):
        a, b = draw.randrange(2, 60), draw.randrange(2, 60)
        told.append(
            {
                "prompt": f"Ann has {a} apples and buys {b} more. How many has she now?",
                "answer": str(a + b),
            }
        )
    place.write_text("".join(json.dumps(row) + "\n" for row in told))
    return place


def timed(command: list[str]) -> tuple[float, subprocess.CompletedProcess[str]]:
    begun = time.perf_counter()
    out = subprocess.run(command, capture_output=True, text=True)
    return time.perf_counter() - begun, out


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--doctor")
    parser.add_argument("--also", action="append", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = rows(Path(folder) / "data.jsonl")
        for target in [*given.also, *(f"{HOLES}:{name}" for name in NAMES)]:
            took, out = timed(
                [
                    sys.executable,
                    "-m",
                    "klinic",
                    "audit-reward",
                    target,
                    "--data",
                    str(data),
                    "--format",
                    "json",
                ]
            )
            found = json.loads(out.stdout) if out.stdout else {"holes": []}
            forms = sorted({hole["form"] for hole in found["holes"]})
            print(
                f"{target.rsplit('/', 1)[-1]}\n  klinic  {took:.2f} s, exit {out.returncode}: {len(found['holes'])} exploits of {', '.join(forms) or 'no form'}"
            )
            if given.doctor:
                took, out = timed([given.doctor, "audit", target, "--format", "json"])
                try:
                    told = json.dumps(json.loads(out.stdout))[:100000]
                except ValueError:
                    told = (out.stdout + out.stderr)[-300:]
                print(f"  doctor  {took:.2f} s, exit {out.returncode}: {told[:400]}")


if __name__ == "__main__":
    main()
