"""Runs a stage of the pipeline ``odd`` inside its container, with the scripts of production.

Each script reads a settings file of the channel, in which this module replaces ``events``, ``pileup`` and
``seed`` if present, as the public client does. It does not import Collidium.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml

#: Stage -> scripts and their settings files. A script is skipped for channels without its settings file.
SCRIPTS: Final = {
    "generate": (
        ("simulation/madgraph_init.py", "madgraph_init_config.yaml"),
        ("simulation/madgraph_gen.py", "madgraph_generation_config.yaml"),
        ("simulation/pythia_gen.py", "pythia_config.yaml"),
    ),
    "simulate": (("simulation/ddsim_run.py", "simulation_config.yaml"),),
    "reconstruct": (("simulation/digi_and_reco.py", "digitization_config.yaml"),),
}
SETTINGS: Final = "configs_development/docker_test"
TABLES: Final = ("particles", "tracker_hits", "calo_hits", "tracks")
_RUN: Final = "0"
#: ACTS writes one file per event, ``tracker_hits/7.parquet``, or one for all, ``tracker_hits.parquet``.
_WRITTEN: Final = re.compile(rf"(?:.*/)?({'|'.join(TABLES)})(?:/\D*(\d+))?\.parquet")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the scripts of a stage; return the exit code of the first that fails, or 0."""
    options = _options(arguments)
    options.seed = part_seed(options.seed, options.first_event)
    for script, settings in SCRIPTS[options.stage]:
        template = options.workspace / SETTINGS / options.channel / settings
        if template.exists():
            code = _run(script, _settings(template, options), options)
            if code:
                print(f"{script} ended with exit code {code}", file=sys.stderr)  # noqa: T201  # a command
                return code
            _copy_madgraph_events(script, options.work)
    if options.stage == "reconstruct":
        return _collect(options.work, options.first_event)
    return 0


def part_seed(seed: int, first_event: int) -> int:
    """Return the scripts' seed for a part of an order; with the order's seed, all parts would be equal.

    So events depend on how an order is cut, unlike those of pipelines that seed each event by its id.
    """
    if not first_event:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed}:{first_event}".encode()).digest()[:8], "big") % 2**31


def _settings(template: Path, options: argparse.Namespace) -> Path:
    """Write the settings of a script, with the values of the order; return the path."""
    settings = yaml.safe_load(template.read_text())
    order = {"events": options.events, "pileup": options.pileup, "seed": options.seed}
    settings.update({name: value for name, value in order.items() if name in settings})
    path: Path = options.work / "settings" / template.name
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    return path


def _run(script: str, settings: Path, options: argparse.Namespace) -> int:
    path = options.workspace / "scripts" / script
    words = [sys.executable, str(path), "--config", str(settings), "--output", str(options.work / "runs")]
    words += ["--output-subdir", _RUN, "--seed", str(options.seed)]
    return subprocess.run(words, cwd=path.parent, check=False).returncode  # noqa: S603  # the pinned scripts


def _copy_madgraph_events(script: str, work: Path) -> None:
    """Copy the events of MadGraph to where the script for Pythia expects them."""
    source = work / "runs" / "all" / "0" / "events.hepmc.gz"
    if script.endswith("madgraph_gen.py") and source.exists():
        target = work / "runs" / _RUN / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _collect(work: Path, first_event: int) -> int:
    """Collect the tables of ACTS in ``tables/``, with events numbered from ``first_event``."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found: dict[str, list[tuple[int, Path]]] = {}
    for path in sorted((work / "runs").rglob("*.parquet")):
        if match := _WRITTEN.fullmatch(path.as_posix()):
            found.setdefault(match[1], []).append((int(match[2] or 0), path))
    (work / "tables").mkdir(exist_ok=True)
    for table, files in found.items():
        with contextlib.ExitStack() as stack:
            writer = None
            for _, path in sorted(files):
                events = pq.read_table(path)
                ids = pc.add(events.column("event_id"), first_event).cast(pa.uint32())
                events = events.set_column(events.column_names.index("event_id"), "event_id", ids)
                if writer is None:
                    file = work / "tables" / f"{table}.parquet"
                    writer = stack.enter_context(pq.ParquetWriter(file, events.schema))
                writer.write_table(events)
    if not found:
        print("digi_and_reco.py left no tables", file=sys.stderr)  # noqa: T201  # a command
        return 1
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A stage of the pipeline odd.", allow_abbrev=False)
    parser.add_argument("stage", choices=SCRIPTS)
    parser.add_argument("--channel", required=True)
    for name in ("--events", "--pileup", "--seed", "--first-event"):
        parser.add_argument(name, required=True, type=int)
    parser.add_argument("--work", required=True, type=Path)
    parser.add_argument("--workspace", default=Path("/workspace"), type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
