"""Measures all there are goals for and compares: goal, figure, ratio to the control, verdict.

    python -m perf [--quick] [SCRIPT ...]

Scripts by name, all by default. The table of perf/README.md gets a row for each figure, in place of the last
one of that name; ``--quick`` is a smoke that writes nothing. A goal in milliseconds is one of cores that do
nothing else, where the control takes its ``reference``. It is met by the median itself or by the median ratio
to the control, which changes little where the machine is slower or busy.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from measuring import Figure

README = Path(__file__).parent / "README.md"
HEADER = "| measurement | goal | figure: minimum | median | control | ratio | goal's ratio | verdict | load |"
RULE = "|---|---:|---:|---:|---:|---:|---:|---|---:|"
BEGIN, END = "<!-- python -m perf -->", "<!-- the end -->"

#: Milliseconds on idle cores: a hello of bare Quart on Hypercorn, and `python -c pass`.
HELLO, PYTHON = 0.33, 13.0


class Goal(NamedTuple):
    """At most ``bound`` where the control takes ``reference``; a rate at least so many times its control."""

    bound: float
    reference: float = 1.0
    unit: str = "times its control"
    is_rate: bool = False

    @property
    def ratio(self) -> float:
        return self.bound / self.reference

    def is_met(self, median: float, ratio: float) -> bool:
        return ratio >= self.ratio if self.is_rate else ratio <= self.ratio or median <= self.bound


def request(milliseconds: float) -> Goal:
    return Goal(milliseconds, HELLO, "ms")


def rate(ratio: float) -> Goal:
    return Goal(ratio, is_rate=True)


#: By script, in the order in which they run, and by the names of their figures.
GOALS: dict[str, dict[str, Goal]] = {
    "startup": {
        "`collidium --help`": Goal(150, PYTHON, "ms"),
        "a server that is ready": Goal(1200, PYTHON, "ms"),
    },
    "api": {
        f"{path}, {kind}": request(bound)
        for kind in ("SQLite", "PostgreSQL")
        for path, bound in {
            "GET /healthz": 0.36,
            "GET /v1/me": 0.45,
            "GET /v1/requests/{id}": 0.7,
            "GET /v1/leaderboard/tracking, 100 ranks": 0.5,
            "GET /v1/leaderboard/jets, without truth": 0.5,
        }.items()
    },
    "simulate": {
        f"{path}, {rows} requests kept, {kind}": request(bound)
        for kind in ("SQLite", "PostgreSQL")
        for path, bound in {
            "POST /v1/simulate": 2,
            "GET /admin/overview": 5,
            "GET /admin/usage?limit=50": 5,
        }.items()
        for rows in ("0", "100,000", "1,000,000", "10,000,000")
        if (path, rows) != ("POST /v1/simulate", "10,000,000")
    },
    "standing": {
        f"{act}, {size} submissions, {kind}": request(hellos * HELLO)
        for kind in ("SQLite", "PostgreSQL")
        for act, hellos in {
            "withdraw one of many": 50,
            "preview a disqualification": 1500,
            "withdraw a best": 1500,
            "ban": 1500,
            "unban": 1500,
            "longest /healthz, ban and unban": 300,
        }.items()
        for size in ("1,000", "10,000", "34,000")
    },
    "history": {
        f"a take of the outbox, {size} deliveries, {kind}": request(10)
        for kind in ("SQLite", "PostgreSQL")
        for size in ("1,000", "10,000", "100,000")
    },
    "workers": {},
    "scoring": {
        "hits scored, recommended": rate(0.55),
        "hits scored, pyarrow default": rate(0.65),
        "hits scored, shuffled": rate(0.40),
    },
    "peer": {
        "hits scored, recommended, by the public client's": rate(350),
        "hits scored, pyarrow default, by the public client's": rate(230),
    },
}


def shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def row(figure: Figure, goal: Goal | None) -> str:
    """A line of the table; a figure without a goal has one, too."""
    ratio = statistics.median(
        value / control for value, control in zip(figure.values, figure.control, strict=True)
    )
    median = statistics.median(figure.values)
    numbers = (min(figure.values), median, statistics.median(figure.control), ratio)
    bound = f"{'at least' if goal.is_rate else 'at most'} {goal.bound:g} {goal.unit}" if goal else ""
    verdict = (shown(goal.ratio), "met" if goal.is_met(median, ratio) else "missed") if goal else ("", "")
    cells = (figure.name, bound, *map(shown, numbers), *verdict, f"{figure.load:.1f}")
    return f"| {' | '.join(cells)} |"


def write(rows: dict[str, str]) -> None:
    """Put the rows into the table of the README, which keeps those that were not measured now."""
    before, table, after = re.split(f"{BEGIN}\n|{END}", README.read_text())
    kept = {line.split(" | ")[0].removeprefix("| "): line for line in table.splitlines()[2:]} | rows
    README.write_text(f"{before}{BEGIN}\n" + "\n".join([HEADER, RULE, *kept.values()]) + f"\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m perf", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run: nothing is measured")
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT", help=", ".join(GOALS))
    options = parser.parse_args()
    if unknown := set(options.scripts) - set(GOALS):
        parser.error(f"no goals for {', '.join(sorted(unknown))}")
    rows = {}
    print(f"{HEADER}\n{RULE}")
    for script in options.scripts or GOALS:
        for figure in import_module(script).figures(options.quick):
            rows[figure.name] = row(figure, GOALS[script].get(figure.name))
            print(rows[figure.name], flush=True)
    if not options.quick:
        write(rows)


if __name__ == "__main__":
    main()
