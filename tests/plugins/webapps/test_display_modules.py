"""The event display's modules in Node, with unit tests and real events."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

from collidium.client import Client
from collidium.datasets import sample
from collidium.testing.server import ServerProcess

from . import node

ROOT: Final = Path(__file__).parents[3]
TESTS: Final = Path(__file__).parent / "display"
GEOMETRY: Final = ROOT / "plugins/collidium_plugins/webapps/static/detectors/odd.json"
PIXEL_BARREL: Final = 17
LONG_STRIP_BARREL: Final = 29


def test_every_module_computes_what_it_says() -> None:
    done = node.run("--test", *sorted(TESTS.glob("*.test.mjs")))

    assert done.returncode == 0, done.stdout


def facts(server: ServerProcess, tmp_path: Path, event_id: int) -> dict[str, Any]:
    """What the display makes of an event of the sample, of the very bytes that the server sends."""
    with Client(server.base_url, token="") as client:
        content = client.event(sample.CONFIG, event_id, repo="sample").content
    file = tmp_path / "event.arrows"
    file.write_bytes(content)
    done = node.run(TESTS / "facts.mjs", file, GEOMETRY)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_display_reads_what_the_server_sends(web: ServerProcess, tmp_path: Path) -> None:
    shown = facts(web, tmp_path, 0)

    assert shown["rows"] == {"particles": 51, "tracker_hits": 465, "calo_hits": 1127, "tracks": 13}
    assert shown["position"] == [-83.02413940429688, -34.6954460144043, -1516.800048828125]
    assert (shown["source"]["event_id"], shown["source"]["config"]) == ("0", sample.CONFIG)
    assert shown["detector"] == "Open Data Detector"
    assert shown["particlesKnown"]
    assert not shown["withheld"]
    assert 0.3 < shown["towers"] < 0.65, "of 0.647 GeV in all cells, flakes are left out"


def test_tracks_of_real_events_run_through_their_hits(web: ServerProcess, tmp_path: Path) -> None:
    """Strips do not measure along themselves, so that only pixels are near in space."""
    distances: dict[int, list[float]] = defaultdict(list)
    for event_id in range(5):
        for volume, distance in facts(web, tmp_path, event_id)["distances"]:
            distances[volume].append(distance)

    assert len(distances[PIXEL_BARREL]) > 500
    assert statistics.median(distances[PIXEL_BARREL]) < 0.5
    assert statistics.quantiles(distances[PIXEL_BARREL], n=10)[-1] < 1.0
    assert statistics.median(distances[LONG_STRIP_BARREL]) < 54.0, "half the length of their modules"


def test_an_unknown_field_is_measured_from_tracks(web: ServerProcess, tmp_path: Path) -> None:
    with Client(web.base_url, token="") as client:
        content = client.event(sample.CONFIG, 1, repo="sample").content
    file = tmp_path / "event.arrows"
    file.write_bytes(content.replace(b"field_tesla", b"feeld_tesla"))

    assert json.loads(node.run(TESTS / "facts.mjs", file, GEOMETRY).stdout)["field"] == pytest.approx(
        3, abs=0.02
    )


def test_the_geometry_comes_from_hits_of_the_sample() -> None:
    script = [sys.executable, ROOT / "web/detector.py", sample.DIRECTORY]

    assert subprocess.run(script, capture_output=True, text=True, check=True).stdout == GEOMETRY.read_text()
