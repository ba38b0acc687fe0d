"""The task on a real server: measured by the command, submitted, and verified."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, tables_of

from collidium.contracts.digest import event_digests, together
from collidium.testing.server import ServerProcess, run_command

EVENTS = range(12)
TABLES = tables_of(EVENTS, hits=60)
DIGEST = together(event_digests(TABLES["tracker_hits"]))

#: Reads two events and says it was all.
HASTY = """
from collidium.scoring.bench import loaders

def load(reading):
    return loaders.load(reading).slice(0, 2)
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A server that asks for the slice of a dataset on its own hub, and a user who reads it."""

    server: ServerProcess
    token: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        url = self.server.base_url
        variables = {"PLATFORM_BACKEND": url, "PLATFORM_HUB_URL": f"{url}/hub", "HF_TOKEN": self.token}
        return run_command(arguments, self.server.environment | variables, self.server.directory)

    def done(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    source = events.write(tmp_path_factory.mktemp("events"), TABLES, events_per_shard=5)
    with ServerProcess(tmp_path_factory.mktemp("site")) as server:
        imported = server.run(
            *("truth", "import", "data_loading", "--from", str(source)),
            *("--config", CONFIG, "--events", f"0:{len(EVENTS)}"),
        )
        assert imported.returncode == 0, imported.stderr
        site = Site(server, server.add_user("rita"))
        site.done("datasets", "publish", str(source), "--repo", "slice")
        yield site


def test_a_measured_result_counts_once_an_operator_verifies_it(site: Site, tmp_path: Path) -> None:
    predictions = tmp_path / "times.parquet"
    result = json.loads(
        site.done(
            "bench", "data-loading", "rita/slice", "--repeats", "2", "--output", str(predictions), "--json"
        )
    )
    assert (result["config"], result["table"], result["events"]) == (CONFIG, "tracker_hits", "0:12")
    assert result["digest"] == DIGEST
    assert len(result["local"]["seconds"]) == len(result["streaming"]["seconds"]) == 2
    receipt = json.loads(site.done("submit", "data_loading", str(predictions), "--json"))
    assert receipt["scores"] == pytest.approx(
        {f"events_per_second_{name}": result[name]["events_per_second"] for name in ("local", "streaming")}
    )
    assert receipt["uncertainties"] == {}
    assert receipt["credits_earned"] == 0
    verified = httpx.post(
        f"{site.server.base_url}/admin/submissions/{receipt['submission_id']}/verify",
        headers={"X-Admin-Token": site.server.admin_token},
        trust_env=False,
    )
    assert verified.json()["credits_earned"] == 60


def test_bounds_of_integers_have_all_digits(site: Site) -> None:
    assert "integer from 0 to 9223372036854775807 " in site.done("tasks", "data_loading")


def test_the_output_for_people(site: Site, tmp_path: Path) -> None:
    done = site.run(
        "bench", "data-loading", "rita/slice", "--repeats", "1", "--output", str(tmp_path / "t.parquet")
    )
    assert done.returncode == 0, done.stderr
    assert "events per second" in done.stdout
    assert f"collidium submit data_loading {tmp_path / 't.parquet'}" in done.stderr
    refused = site.run("bench", "data-loading", str(tmp_path))
    assert refused.returncode == 3
    assert "name a repository" in refused.stderr


def test_a_loader_that_reads_less_fails_and_writes_nothing(site: Site, tmp_path: Path) -> None:
    (site.server.directory / "hasty.py").write_text(HASTY)
    output = tmp_path / "t.parquet"
    done = site.run("bench", "data-loading", "rita/slice", "--loader", "hasty:load", "--output", str(output))
    assert done.returncode == 1
    assert "10 events are missing, for example 2" in done.stderr
    assert not output.exists()
