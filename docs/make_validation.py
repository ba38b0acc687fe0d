"""Makes docs/validation.md and the reports in docs/validation, from events of the pipeline ``acts``::

    python -m docs.make_validation                                           some ten minutes of CPU
    python -m docs.make_validation --muons 2000 --ttbar 100 --crowded 1      less
    python -m docs.make_validation --work DIR        keeps events in DIR, and uses those that are there

The page says how many events it is of.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from collidium_plugins.acts_pipeline import VERSION
from collidium_plugins.validation.page import cells, html, title
from collidium_plugins.validation.report import Report, validate

DOCS = Path(__file__).parent
#: Sample -> title, channel, pileup.
SAMPLES = {
    "muon_gun_pu0": ("Muons of 1 to 10 GeV, two per event", "muon_gun", 0),
    "ttbar_pu0": ("Top quark pairs without pileup", "ttbar", 0),
    "ttbar_pu200": ("Top quark pairs in 200 pileup collisions", "ttbar", 200),
}
SEED = 16180
#: The page is written by hand up to this line.
RESULTS = "## Results\n"


def events_of(name: str, events: int, work: Path) -> Path:
    """Simulate a sample below ``work``; one that is there is used as it is."""
    _, channel, pileup = SAMPLES[name]
    directory = work / name
    order = ("--channel", channel, "--events", str(events), "--pileup", str(pileup), "--seed", str(SEED))
    where = ("--pipeline", "acts", "--runtime", "none", "--output", str(directory))
    subprocess.run([sys.executable, "-m", "collidium", "simulate", *order, *where], check=True)
    return directory


def material_map(file: Path) -> Path:
    """Write the tracker's material by η as quantities that ``collidium validate --with`` reads."""
    from docs import make_material

    edges = np.round(make_material.EDGES, 5)
    quantities: dict[str, Any] = {}
    for part in make_material.PARTS:
        values = make_material.ours(part, range(len(edges) - 1))
        for column, length in enumerate(("x0", "l0")):
            name = f"material_{part}_{length}"
            described = {"title": f"Material of {part}, {length.upper()}", "x": "η", "y": length.upper()}
            quantities[name] = described | {"edges": edges.tolist(), "value": values[:, column].tolist()}
    file.write_text(json.dumps({"quantities": quantities}))
    return file


def page(reports: dict[str, Report]) -> str:
    """Return docs/validation.md with new results."""
    text, *_ = (DOCS / "validation.md").read_text().partition(RESULTS)
    made = f"Pipeline `{VERSION}`, {datetime.now(UTC):%Y-%m-%d}. Made by `python -m docs.make_validation`.\n"
    sections = [line for name, report in reports.items() for line in _section(name, report)]
    return "\n".join([f"{text}{RESULTS}", made, *sections])


def _section(name: str, report: Report) -> Iterator[str]:
    heading, *_ = SAMPLES[name]
    entries = report["quantities"]
    summary = report["summary"]
    yield f"### {heading}\n"
    yield (
        f"{report['events']} events: {summary['agrees']} quantities agree with their reference, "
        f"{summary['disagrees']} disagree. [Plots](validation/{name}.html), "
        f"[figures](validation/{name}.json).\n"
    )
    yield "| quantity | value | reference | χ²/bin (bins) | beyond tolerance | verdict |"
    yield "|---|---|---|---|---|---|"
    for entry in entries.values():
        if entry["bins"]:
            *columns, verdict = (text.replace("|", r"\|") for text in (title(entry), *cells(entry)))
            shown = f"**{verdict}**" if verdict == "disagrees" else verdict
            yield f"| {' | '.join(columns)} | {shown} |"
    others = ", ".join(dict.fromkeys(entry["title"] for entry in entries.values() if not entry["bins"]))
    yield f"\nWithout a reference: {others}.\n"
    if report["missing"]:
        reasons = dict.fromkeys(report["missing"].values())
        yield f"{len(report['missing'])} quantities were not made: {'; '.join(reasons)}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--muons", type=int, default=10_000, help="two in an event")
    parser.add_argument("--ttbar", type=int, default=1_000, help="top quark pairs without pileup")
    parser.add_argument("--crowded", type=int, default=10, help="top quark pairs in pileup 200")
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    wanted = (arguments.muons // 2, arguments.ttbar, arguments.crowded)
    counts = dict(zip(SAMPLES, wanted, strict=True))
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        material = material_map(work / "material.json")
        reports: dict[str, Report] = {}
        for name, events in counts.items():
            extra = [material] if name == "muon_gun_pu0" else []
            reports[name] = validate(events_of(name, events, work), name, extra=extra)
    for name, report in reports.items():
        (DOCS / "validation" / f"{name}.json").write_text(json.dumps(report, ensure_ascii=False) + "\n")
        (DOCS / "validation" / f"{name}.html").write_text(html(report))
    (DOCS / "validation.md").write_text(page(reports))


if __name__ == "__main__":
    main()
