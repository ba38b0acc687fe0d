"""`collidium datasets publish` with a running server: hosting a benchmark and taking part in it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, tables_of
from tests.hub import HfApi

from collidium.client import write_predictions
from collidium.contracts.tables import flatten
from collidium.testing.server import ServerProcess, run_command

EVALUATION = "6:10"


@dataclass(frozen=True, slots=True)
class Site:
    """A server with its hub, and people on it."""

    server: ServerProcess
    host: str
    guest: str

    def run(
        self, *arguments: str, token: str | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        url = self.server.base_url
        environment = self.server.environment | {"PLATFORM_BACKEND": url, "PLATFORM_HUB_URL": f"{url}/hub"}
        if token:
            environment["HF_TOKEN"] = token
        return run_command(arguments, environment | variables, self.server.directory)

    def done(self, *arguments: str, token: str | None = None) -> str:
        done = self.run(*arguments, token=token)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with ServerProcess(tmp_path_factory.mktemp("site")) as server:
        yield Site(server, server.add_user("host"), server.add_user("guest"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten events, as `collidium simulate` leaves them: with a card that names the seed."""
    directory = events.write(tmp_path_factory.mktemp("events"), tables_of(range(10)))
    (directory / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n\n# Events\n\n| seed | 4711 |\n")
    return directory


def test_a_benchmark_can_be_hosted_and_entered(site: Site, source: Path, tmp_path: Path) -> None:
    """The hub, the shards and the scores are real; only the model is an oracle that has seen the truth."""
    truth, public = tmp_path / "truth", tmp_path / "public"
    shown = site.done(
        *("datasets", "publish", str(source), "--repo", "benchmark", "--tag", "v1", "--json"),
        *("--withhold-truth", EVALUATION, "--truth-output", str(truth)),
        token=site.host,
    )
    published = json.loads(shown)
    assert published["repo"] == "host/benchmark"
    assert "seed" in published["notes"][0]
    assert truth.stat().st_mode & 0o777 == 0o700

    copied = ("datasets", "download", "host/benchmark", "--config", CONFIG, "--output", str(public))
    site.done(*copied, "--revision", "v1")
    assert "4711" not in "".join(path.read_text() for path in public.rglob("*.md"))
    refused = site.run("truth", "import", "tracking", "--from", "host/benchmark", "--events", EVALUATION)
    assert refused.returncode == 1
    assert "`collidium tasks NAME` shows" in refused.stderr
    site.done("truth", "import", "tracking", "--from", str(truth), "--events", EVALUATION)

    hits = pq.read_table(sorted((public / f"data/{CONFIG}_tracker_hits").glob("*.parquet")))
    oracle = predictions(hits.slice(6), truth)
    write_predictions(oracle, tmp_path / "oracle.parquet")
    sent = ("submit", "tracking", str(tmp_path / "oracle.parquet"), "--json")
    score = json.loads(site.done(*sent, token=site.guest))["scores"]
    assert score["trackml_weighted_efficiency"] == 1.0
    assert score["fake_rate"] == score["duplicate_rate"] == 0.0
    assert score["physics_eff_pt1"] == 1.0


def predictions(hits: pa.Table, truth: Path) -> pa.Table:
    """What an oracle says: it knows the particle at each place, and numbers hits as they are published."""
    known = pq.read_table(sorted((truth / f"data/{CONFIG}_tracker_hits").glob("*.parquet")))
    places = flatten(known, ["x", "y", "z", "particle_id"]).to_pylist()
    by_place = {(p["event_id"], p["x"], p["y"], p["z"]): p["particle_id"] for p in places}
    made: dict[str, list[int]] = {"event_id": [], "hit_id": [], "track_id": []}
    tracks: dict[int, int] = {}
    for event, *where in zip(*(hits.column(n).to_pylist() for n in ("event_id", "x", "y", "z")), strict=True):
        for hit_id, place in enumerate(zip(*where, strict=True)):
            particle = by_place[event, *place]
            made["event_id"].append(event)
            made["hit_id"].append(hit_id)
            made["track_id"].append(tracks.setdefault(particle, len(tracks)) if particle else -1)
    return pa.table({name: np.array(values) for name, values in made.items()})


def test_truth_is_imported_from_a_private_dataset(site: Site, source: Path) -> None:
    publish = ("datasets", "publish", str(source), "--repo", "secrets", "--private")
    site.done(*publish, token=site.host)
    importing = ("truth", "import", "tracking", "--from", "host/secrets", "--events", "2:9", "--json")
    for token in (None, site.guest):
        refused = site.run(*importing, token=token)
        assert refused.returncode == 3, refused.stdout
    imported = site.run(*importing, token=site.host)
    record = json.loads(imported.stdout)
    assert (record["task"], record["dataset"], record["current"]) == ("tracking", CONFIG, True)
    assert record["rows"]["hits"] == 7 * 300
    assert site.host not in imported.stdout + imported.stderr


def test_truth_is_imported_from_the_older_layout(site: Site, tmp_path: Path) -> None:
    directory = events.write_older(tmp_path / "mine", tables_of(range(10)))
    site.done("datasets", "publish", str(directory), "--repo", "older", token=site.host)
    importing = ("truth", "import", "tracking", "--from", "host/older", "--events", EVALUATION, "--json")
    assert json.loads(site.done(*importing))["rows"]["hits"] == 4 * 300


def test_a_killed_command_can_be_repeated(site: Site, source: Path) -> None:
    command = ("datasets", "publish", str(source), "--repo", "killed", "--tag", "v1")
    hub = HfApi(endpoint=f"{site.server.base_url}/hub", token=site.host)
    seen = []
    for place in ("publish.created", "publish.uploaded", "publish.published"):
        killed = site.run(*command, token=site.host, COLLIDIUM_FAILPOINT=place)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        files = set(hub.list_repo_files("host/killed", repo_type="dataset")) - {".gitattributes"}
        seen.append(len(files))
    assert seen == [0, 0, 4 * 3 + 2], "nothing, or all of it"
    assert hub.list_repo_refs("host/killed", repo_type="dataset").tags == []
    done = site.run(*command, token=site.host)
    assert "The dataset has not changed since the last version." in done.stderr
    for shown in (f"{site.server.base_url}/hub/datasets/host/killed", f"{CONFIG} (10 events)"):
        assert shown in done.stdout
    (tag,) = hub.list_repo_refs("host/killed", repo_type="dataset").tags
    assert (tag.name, len(hub.list_repo_commits("host/killed", repo_type="dataset"))) == ("v1", 2)


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (("--withhold-truth", EVALUATION), 2, "go together"),
        (("--config", "ttbar_pu200"), 1, "there is no config ttbar_pu200"),
        (("--repo", "guest/theirs"), 3, "does not permit this"),
        (("--hub", "http://127.0.0.1:9"), 4, "cannot be reached"),
    ],
)
def test_exit_codes(site: Site, source: Path, more: tuple[str, ...], code: int, message: str) -> None:
    done = site.run("datasets", "publish", str(source), "--repo", "x", *more, token=site.host)
    assert done.returncode == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert site.host not in done.stderr + done.stdout


def test_the_error_without_a_token_names_the_command(site: Site, source: Path) -> None:
    done = site.run("datasets", "publish", str(source), "--repo", "x")
    assert done.returncode == 3
    assert "collidium login" in done.stderr
