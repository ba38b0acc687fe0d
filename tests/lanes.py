"""Run the whole suite in parts, three at once, and build the site, in one environment; ``tox -e py`` does.

With arguments pytest gets these instead: ``tox -e py -- tests/core -k ledger``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests import needs

from collidium.testing.processes import ending_with_parent

#: More than CI has cores: tests wait for servers and processes for a third of their time.
AT_ONCE: Final = 3
#: Parts on SQLite, the longest first; all other tests are one more.
PARTS: Final = ("tests/core", "tests/plugins", "tests/core/api", "tests/plugins/webapps", "tests/tui")
#: What another database could change.
ON_POSTGRESQL: Final = (
    "tests/core",
    "tests/plugins/webapps/test_api_by_cookie.py",
    "tests/runners/slurm/test_slurm_orders.py",
)
#: There: what starts servers for other reasons than what they keep.
BUT_FOR: Final = tuple(
    f"tests/core/api/test_{name}.py"
    for name in (
        "anonymous_callers",
        "bad_predictions",
        "benchmark_attacks",
        "curves",
        "datasets_api",
        "generated_clients",
        "http_conventions",
        "limits",
        "openapi",
        "plugins_in_the_server",
        "watching",
    )
)


#: What is built in addition.
SITE: Final = ("docs/build_site.py",)


def run(arguments: Iterable[str]) -> int:
    """Run Python; the exit code."""
    return subprocess.call(ending_with_parent([sys.executable, *arguments]))


def tests_of(arguments: Iterable[str]) -> tuple[str, ...]:
    """Python's arguments to run pytest with these."""
    return "-m", "pytest", "--durations", "30", *arguments


def parts() -> list[list[str]]:
    """The arguments of each part of the tests."""
    chosen = "database and not one_database"
    on_postgresql = ["--database", "postgresql", "-m", chosen, *ON_POSTGRESQL, *_without(BUT_FOR)]
    on_sqlite = [
        ["--database", "sqlite", part, *_without(other for other in PARTS if other.startswith(f"{part}/"))]
        for part in ("tests", *PARTS)
    ]
    return [*on_sqlite[:3], on_postgresql, *on_sqlite[3:]]


def _without(paths: Iterable[str]) -> list[str]:
    return [f"--ignore={path}" for path in paths]


if __name__ == "__main__":
    if chosen := sys.argv[1:]:
        sys.exit(run(tests_of(["--database", "sqlite", *chosen])))
    with TemporaryDirectory() as directory, ThreadPoolExecutor(AT_ONCE) as threads:
        report = Path(directory) / "report"
        report.touch()
        os.environ[needs.REPORT] = str(report)
        codes = list(threads.map(run, [*map(tests_of, parts()), SITE]))
        counts = [json.loads(line) for line in report.read_text().splitlines()]
    text, is_enough = needs.summary(
        sum(tests for tests, _ in counts), [name for _, names in counts for name in names]
    )
    sys.stdout.write(f"{text}\n")
    sys.exit(any(codes) or not is_enough)
