"""``collidium start`` and what cards say of data: from a server's card to a submission, on a real hub."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import tables_of
from tests.hub import token_on
from tests.sandboxes import allowance
from tests.tasks.jets.events import FLAVOURS, predictions, tables

from collidium import plugins
from collidium.client import Client
from collidium.contracts.task import EventRange
from collidium.datasets import sample
from collidium.datasets.writing import write_dataset
from collidium.errors import CollidiumError
from collidium.settings import Settings
from collidium.testing.server import ServerProcess, run_command
from collidium.truth.published_data import find_data, located
from collidium_tasks.jets import JetsTask

CONFIG, SCORED = "ttbar_pu0", range(50, 60)


@dataclass(frozen=True, slots=True)
class Site:
    """A server with its hub, and lena, who publishes there and reads."""

    server: ServerProcess
    token: str

    @property
    def environment(self) -> dict[str, str]:
        """With the hub for operators' commands: the server's port is another one each time."""
        url = self.server.base_url
        own = {"PLATFORM_BACKEND": url, "PLATFORM_HUB_URL": f"{url}/hub", "HF_TOKEN": self.token}
        return {**self.server.environment, **own}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_command(arguments, self.environment, self.server.directory)

    def done(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def train(self, directory: Path, *options: str) -> str:
        """What train.py of a folder prints: it knows where its hub is."""
        program = [sys.executable, str(directory / "train.py"), *options]
        environment = self.server.environment | {"HF_TOKEN": self.token}
        done = subprocess.run(program, env=environment, cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    source, truth = tmp_path_factory.mktemp("events"), tmp_path_factory.mktemp("truth") / "truth"
    hits = tables_of(range(SCORED.stop), hits=50)["tracker_hits"]
    made = {**tables(FLAVOURS * 12, first=0), "tracker_hits": hits}
    write_dataset(source, CONFIG, [made], events_per_shard=8)
    scored = f"{SCORED.start}:{SCORED.stop}"
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        site = Site(server, token_on(server.data_dir / "hub", "lena"))
        site.done(
            *("datasets", "publish", str(source), "--repo", "jets"),
            *("--withhold-truth", scored, "--truth-output", str(truth)),
        )
        site.done(
            *("truth", "import", "jets", "--from", str(truth), "--events", scored, "--config", CONFIG),
            *("--inputs", "lena/jets", "--train", "lena/jets@main"),
        )
        yield site


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server without truth, and without anything on its hub."""
    with ServerProcess(tmp_path_factory.mktemp("fresh")) as server:
        yield Site(server, token_on(server.data_dir / "hub", "lena"))


@pytest.mark.long
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("size", ["demo", "workshop"])
def test_every_folder_runs_on_a_seeded_server(tmp_path: Path, size: str) -> None:
    """With the data that the cards name; ``workshop`` simulates for half an hour."""
    with ServerProcess(tmp_path / "server", env=allowance()) as server:
        site = Site(server, server.add_user("lena"))
        command = [sys.executable, "-m", "collidium", "seed", "--size", size]
        environment = {**server.environment, "PLATFORM_BACKEND": server.base_url}
        seeded = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert seeded.returncode == 0, seeded.stderr
        with Client(server.base_url) as client:
            names = [task.name for task in client.tasks()]
        for name in names:
            folder = tmp_path / name
            site.done("start", name, str(folder))
            site.train(folder)
            submitted = subprocess.run(
                ["sh", str(folder / "submit.sh"), "--json"],
                env=site.environment,
                capture_output=True,
                text=True,
            )
            assert "scores" in json.loads(submitted.stdout), (name, submitted.stderr)
        assert sorted(names) == sorted(plugins.load().tasks().things)


def test_a_card_names_data_and_the_commands_that_fetch_it(site: Site, tmp_path: Path) -> None:
    with Client(site.server.base_url) as client:
        card = client.task("jets")
    training, evaluation = card.training_data, card.evaluation_data
    assert training is not None
    assert evaluation is not None
    # One repository has both: what is scored is not there to be learned from.
    assert (training.events.start, training.events.stop) == (0, SCORED.start)
    assert (evaluation.events.start, evaluation.events.stop) == (SCORED.start, SCORED.stop)
    assert (training.repository, len(training.revision), training.config) == ("lena/jets", 40, CONFIG)
    assert training.bytes > evaluation.bytes > 0
    shown = site.done("tasks", "jets")
    page = httpx.get(f"{site.server.base_url}/leaderboard/jets", trust_env=False).text
    for data in (training, evaluation):
        assert f"\n  {data.download}\n" in shown
        assert data.download in page
    directory = site.done(*evaluation.download.split()[1:], "--cache", str(tmp_path)).strip()
    assert all(any(Path(directory).glob(f"data/*{table}/*.parquet")) for table in evaluation.tables)


def test_a_started_folder_trains_scores_and_submits(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "tagger"
    site.done("start", "jets", str(folder))
    assert {path.name for path in folder.iterdir()} >= {"README.md", "train.py", "model.py", "submit.sh"}
    assert "logistic regression" in (folder / "model.py").read_text(), "the task's own"
    sources = json.loads((folder / "task.json").read_text())
    assert sources["training"]["has_truth"]
    assert "has_truth" not in sources["evaluation"]
    printed = site.train(folder)
    assert "btag_auc: 0." in printed or "btag_auc: 1." in printed
    submitted = subprocess.run(
        ["sh", str(folder / "submit.sh"), "--json"], env=site.environment, capture_output=True, text=True
    )
    assert submitted.returncode == 0, submitted.stderr
    assert json.loads(submitted.stdout)["scores"]["btag_auc"] > 0

    again = site.run("start", "jets", str(folder))
    assert again.returncode == 3
    assert "exists already" in again.stderr


def test_a_folder_predicts_the_events_of_the_package(fresh: Site, tmp_path: Path) -> None:
    """Where those are what is scored, as after the README's first steps, it ends with a submission."""
    events = ("--from", str(sample.DIRECTORY), "--config", sample.CONFIG, "--events", "3:5")
    fresh.done("truth", "import", "tracking", *events)
    fresh.done("start", "tracking", str(tmp_path / "here"))
    assert "not known" not in fresh.train(tmp_path / "here")
    submit = ["sh", str(tmp_path / "here" / "submit.sh"), "--json"]
    submitted = subprocess.run(submit, env=fresh.environment, capture_output=True, text=True)
    assert json.loads(submitted.stdout)["scores"]["trackml_weighted_efficiency"] > 0, submitted.stderr


def test_a_challenge_starts_with_the_model_of_its_task(site: Site, tmp_path: Path) -> None:
    secret = {"ADMIN_TOKEN": site.server.admin_token}
    words = ("challenge", "new", "jets-course", "--task", "jets")
    made = run_command(words, site.environment | secret, site.server.directory)
    assert made.returncode == 0, made.stderr
    started = site.run("start", "jets-course", str(tmp_path / "tagger"))
    assert "install the plugin" not in started.stderr
    assert "logistic regression" in (tmp_path / "tagger" / "model.py").read_text()
    assert "`collidium tasks jets-course`" in (tmp_path / "tagger" / "README.md").read_text()
    assert "teams are fixed" not in site.done("challenge", "show", "jets-course"), "it has none"
    assert "submit jets-course" in (tmp_path / "tagger" / "submit.sh").read_text()
    # At home it is scored on the events to learn from that the challenge names.
    known = {(event, jet): (0.6, 0.2, 0.2) for event, of in enumerate(FLAVOURS) for jet in range(len(of))}
    pq.write_table(predictions(known), tmp_path / "known.parquet")
    scored = json.loads(site.done("score", "jets-course", str(tmp_path / "known.parquet"), "--json"))
    assert (scored["task"], scored["dataset"]) == ("jets", CONFIG)
    assert scored["scores"]["btag_auc"] == 0.5, "of predictions that are all the same"


@pytest.mark.parametrize("task", sorted(plugins.load().tasks().things))
def test_every_folder_runs_on_a_server_without_data(fresh: Site, tmp_path: Path, task: str) -> None:
    started = fresh.run("start", task, str(tmp_path / "here"))
    assert started.returncode == 0, started.stderr
    card = plugins.load().tasks().get(task).card
    printed = fresh.train(tmp_path / "here", *(("--repeats", "1") if task == "data_loading" else ()))
    assert any(metric.name in printed for metric in card.metrics)
    if card.inputs:
        assert "events that come with the package" in started.stderr
        assert '"has_truth": true' in started.stderr, "the form of an entry"
        assert "events that come with the package" in (tmp_path / "here" / "README.md").read_text()


def test_a_measurement_starts_with_a_script_of_its_own(site: Site, tmp_path: Path) -> None:
    site.done("truth", "import", "data_loading", "--from", "lena/jets", "--config", CONFIG, "--events", "0:6")
    site.done("start", "data_loading", str(tmp_path / "loader"))
    assert "events_per_second_local" in site.train(tmp_path / "loader", "--repeats", "1")


def test_data_that_users_could_not_fetch_is_refused(site: Site, tmp_path: Path) -> None:
    settings = Settings(hub_url=f"{site.server.base_url}/hub")

    def find(repository: str, stop: int = SCORED.stop) -> object:
        inputs = located(repository, settings, site.token)
        events = EventRange(SCORED.start, stop)
        return find_data(
            JetsTask.card, tmp_path, inputs, inputs, config=CONFIG, events=events, cache=tmp_path
        )

    assert find("lena/jets")
    for wrong, message in {
        ("lena/nothing",): "lena/nothing",
        (str(tmp_path),): "is a directory",
        ("lena/jets@v9",): "no such revision",
        ("lena/jets", 61): "60:61 are missing",
    }.items():
        with pytest.raises(CollidiumError, match=message):
            find(*wrong)
    before = site.done("truth", "list", "--json")
    refused = site.run(
        "truth", "import", "jets", "--from", "lena/jets", "--events", "0:9", "--train", "lena/no"
    )
    assert (refused.returncode, "lena/no" in refused.stderr) == (3, True)
    assert site.done("truth", "list", "--json") == before
