"""What was published, as others read it: the `datasets` library and the client that people have."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, tables_of

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import publish
from collidium.hub.client import Hub

from .conftest import HubServer

EVENTS = 10
EVALUATION = EventRange(6, 8)


@pytest.fixture(scope="module")
def repo(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten events in shards of four, the truth of two withheld, tagged v1."""
    directory = tmp_path_factory.mktemp("published")
    source = events.write(directory / "events", tables_of(range(EVENTS)))
    publication = Publication(
        source, "benchmark", tag="v1", withholding=Withholding(EVALUATION, directory / "truth")
    )
    return asyncio.run(publish(publication, Hub(hub.url, hub.token("ada")))).repo


@dataclass(frozen=True, slots=True)
class Reader:
    """A user without a token, with third-party programs."""

    programs: Path
    environment: dict[str, str]

    def python(self, code: str) -> Any:
        """What the code printed last, as JSON."""
        done = subprocess.run(
            [str(self.programs / "python"), "-c", code],
            check=False,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def reader(hub: HubServer, programs: Path, tmp_path: Path, isolated_environment: dict[str, str]) -> Reader:
    environment = isolated_environment | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "HF_HOME": str(tmp_path / "huggingface"),
        "HF_ENDPOINT": hub.url,
        "COLLIDERML_DATA_DIR": str(tmp_path / "data"),
    }
    return Reader(programs, environment)


@pytest.fixture(scope="module")
def expected() -> dict[str, list[dict[str, Any]]]:
    return {name: table.to_pylist() for name, table in tables_of(range(EVENTS)).items()}


def test_the_datasets_library_reads_it(
    reader: Reader, repo: str, expected: dict[str, list[dict[str, Any]]]
) -> None:
    """Also a config whose files have columns with values in some events and without any in others."""
    read = reader.python(
        f"""
import json
from datasets import get_dataset_config_names, load_dataset
names = get_dataset_config_names("{repo}")
hits, streamed, particles = (
    load_dataset("{repo}", "{CONFIG}_" + table, split="train", revision="v1", streaming=streaming)
    for table, streaming in [("tracker_hits", False), ("tracker_hits", True), ("particles", False)]
)
print(json.dumps([names, str(hits.features["particle_id"]), list(hits), list(streamed), list(particles)]))
"""
    )
    names, kind, hits, streamed, particles = read
    assert names == [f"{CONFIG}_{table}" for table in sorted(expected)]
    assert "uint64" in kind
    assert [event["event_id"] for event in hits] == list(range(EVENTS))
    assert streamed == hits
    for event, hit, particle in zip(range(EVENTS), hits, particles, strict=True):
        if event in range(EVALUATION.start, EVALUATION.stop):
            assert hit["particle_id"] is hit["true_x"] is particle["px"] is None
            assert sorted(hit["x"]) == sorted(expected["tracker_hits"][event]["x"])
        else:
            assert hit == expected["tracker_hits"][event]
            assert particle == expected["particles"][event]


def test_the_public_client_downloads_and_loads_it(
    reader: Reader, repo: str, expected: dict[str, list[dict[str, Any]]]
) -> None:
    ranged, first, shards = reader.python(
        f"""
import json, os
import colliderml
from colliderml.core.hf_download import DownloadSpec, download_config
def rows(frames):
    return {{name: frame.sort("event_id").to_dicts() for name, frame in frames.items()}}
wanted = dict(dataset_id="{repo}", revision="v1")
ranged = rows(colliderml.load("{CONFIG}", event_range=(4, 6), **wanted))
found = list(os.walk(os.environ["COLLIDERML_DATA_DIR"]))
shards = sorted(name for *_, names in found for name in names if name.endswith(".parquet"))
first = rows(colliderml.load("{CONFIG}", tables=["tracks"], max_events=3, **wanted))
download_config(DownloadSpec(config="{CONFIG}_calo_hits", **wanted))
print(json.dumps([ranged, first, shards]))
"""
    )
    assert shards == ["train-00001-of-00003.parquet"] * 4, "only those that hold the events"
    assert ranged == {name: rows[4:6] for name, rows in expected.items()}
    assert first == {"tracks": expected["tracks"][:3]}
