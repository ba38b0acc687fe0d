"""A pipeline of four stages in a few lines of shell: what its stages do, its channel says."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.pipeline import TABLES, Pipeline, Stage

NAMES = ("generate", "simulate", "reconstruct", "write")
TITLES = ("hard scatter and parton shower", "detector simulation", "reconstruction", "tables")
IMAGE = "localhost/stages:latest"
#: The channel ``fail_simulate`` fails in the stage simulate, until the file ``mended`` is in its directory.
SCRIPT = """\
#!/bin/sh
set -eu
stage=$1 channel=$2 work=$3 reads=$4 leaves=$5 tables=$6
shift 6
echo "stage $stage of $channel: $* environment: $COLLIDIUM_SEED"
test -z "$reads" || test -e "$work/$reads/events" || { echo "nothing to read" >&2; exit 9; }
if test "${channel#*_}" = "$stage" && ! test -e "$work/mended"; then
    case $channel in
        fail_*) mkdir -p "$work/$leaves"; echo half >"$work/$leaves/half"; echo simulating
                echo "no such geometry: odd" >&2; exit 3 ;;
        hang_*) echo "collidium-progress 1 4"; while ! test -e "$work/go"; do sleep 0.05; done ;;
        deaf_*) trap '' TERM; echo deaf; while true; do sleep 0.1; done ;;
        lazy_*) exit 0 ;;
        stay_*) (i=0; while test $i -lt 300; do sleep 0.1; i=$((i + 1)); done) & ;;
        loud_*) timeout --foreground 20 yes & ;;
        full_*) cat "$0" >/dev/full ;;
        noisy_*) echo "collidium-progress 1 2"; echo "collidium-progress 2 0"; echo collidium-progress; ;;
        around_*) echo "user $(id -u):$(id -g)"; env; ls /sys/class/net; cat /proc/self/status; : >/tmp/x ;;
    esac
fi
mkdir -p "$work/$leaves"
test ! -e "$work/$leaves/half" || { echo "half of something is there" >&2; exit 8; }
echo "collidium-progress 1 2"
echo "$stage" >"$work/$leaves/events"
test "$stage" != write || cp "$tables"/*.parquet "$work/$leaves/"
echo "collidium-progress 2 2"
"""


def tables(events: range) -> dict[str, bytes]:
    """Files of two tables, one of them in two shards."""
    half = events.start + len(events) // 2
    return {
        "particles.parquet": _table(events),
        "tracker_hits-00000-of-00002.parquet": _table(range(events.start, half)),
        "tracker_hits-00001-of-00002.parquet": _table(range(half, events.stop)),
    }


def _table(events: range) -> bytes:
    file = io.BytesIO()
    ids = pa.array(events, pa.uint32())
    pq.write_table(pa.table({"event_id": ids, "px": [[0.5 * event, 1.0] for event in events]}), file)
    return file.getvalue()


def write_script(directory: Path, events: range = range(4)) -> Path:
    """Put the stages and their tables there, to be run on this machine; returns the script."""
    (directory / "tables").mkdir(parents=True, exist_ok=True)
    for name, content in tables(events).items():
        (directory / "tables" / name).write_bytes(content)
    script = directory / "stage"
    script.write_text(SCRIPT)
    return script


def native(script: Path, name: str = "shell") -> Pipeline:
    """The pipeline on this machine."""
    return _pipeline(name, ("sh", str(script)), str(script.parent / "tables"), None)


def contained(image: str = IMAGE, name: str = "shell") -> Pipeline:
    """The pipeline in containers."""
    return replace(_pipeline(name, ("/bin/stage",), "/tables", image), native=None)


def _pipeline(name: str, program: tuple[str, ...], tables: str, image: str | None) -> Pipeline:
    leaves = ("generated", "simulated", "reconstructed", TABLES)
    parameters = (
        "events={events}",
        "pileup={pileup}",
        "seed={seed}",
        "first={first_event}",
        "on={processes}",
    )
    return Pipeline(
        name=name,
        title="stages in shell",
        version="1",
        native=(),
        facts={"Detector": "none"},
        stages=tuple(
            Stage(
                name=stage,
                title=title,
                command=(
                    *program,
                    stage,
                    "{channel}",
                    "{work}",
                    reads,
                    left,
                    tables,
                    *parameters,
                    "{braces}",
                ),
                inputs=(reads,) if reads else (),
                outputs=(left,),
                image=image,
                overhead_seconds=1.0,
                seconds_per_event=0.0,
            )
            for stage, title, reads, left in zip(NAMES, TITLES, ("", *leaves), leaves, strict=False)
        ),
    )
