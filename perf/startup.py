"""How long it takes to import the package and to get the command's help, in fresh processes.

python perf/startup.py [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import collidium": ["-c", "import collidium"],
    "import collidium.client": ["-c", "import collidium.client"],
    "collidium --help": ["-m", "collidium", "--help"],
}


def milliseconds(arguments: list[str], runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - started) * 1000)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    runs = 3 if parser.parse_args().quick else 15
    print("| | median (ms) | smallest (ms) |\n|---|---:|---:|")
    for name, arguments in COMMANDS.items():
        times = milliseconds(arguments, runs)
        print(f"| `{name}` | {statistics.median(times):.0f} | {min(times):.0f} |")


if __name__ == "__main__":
    main()
