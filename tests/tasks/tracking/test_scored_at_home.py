"""``collidium.score`` and ``collidium score`` against a real server: the same numbers, the same problems."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import CONFIG, tables_of
from tests.hub import token_on

import collidium
from collidium import datasets
from collidium.client import Client, write_predictions
from collidium.contracts.tables import flatten
from collidium.contracts.task import Block, Problem
from collidium.datasets.writing import write_dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import CollidiumError, InvalidInput, NotFound, UnusableDataset
from collidium.records import LocalScores
from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask

EVENTS = range(40)
SCORED = range(4, 40)
#: Dependencies of the distribution that a score at home works without.
OF_SERVERS = (
    *("asyncpg", "authlib", "cryptography", "huggingface_hub", "hypercorn", "joserfc", "prometheus_client"),
    *("quart", "quart_cors", "quart_schema", "rich", "standardwebhooks", "textual", "tortoise", "yaml"),
)

HOME = """
import sys

class OutOfReach:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[3:]:
            raise ModuleNotFoundError(f"{name} is not installed", name=name)

sys.meta_path.insert(0, OutOfReach())
import collidium
assert set(sys.modules).isdisjoint({"numpy", "pyarrow"}), "importing it is cheap"
print(collidium.score("tracking", sys.argv[1], truth_from=sys.argv[2]).scores)
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A dataset, a server that is scored against some of its events, and a client."""

    source: Path
    server: ServerProcess
    client: Client

    def predictions(self, seed: int, *, wrong: float = 0.3) -> dict[str, np.ndarray]:
        """The true tracks, a part of the hits with another one's."""
        random = np.random.default_rng(seed)
        table = pa.concat_tables(pq.read_table(path) for path in sorted(self.source.rglob("*hits/*.parquet")))
        hits = flatten(table, ["particle_id"])
        events = hits["event_id"].to_numpy()
        counts = np.unique(events, return_counts=True)[1]
        tracks = hits["particle_id"].to_numpy().astype(np.int64)
        tracks = np.where(random.random(len(tracks)) < wrong, random.permutation(tracks), tracks)
        columns = {
            "event_id": events.astype(np.int64),
            "hit_id": np.concatenate([np.arange(count) for count in counts]),
            "track_id": tracks,
        }
        return {name: column[events >= SCORED.start] for name, column in columns.items()}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    source = tmp_path_factory.mktemp("events")
    tables = tables_of(EVENTS)
    write_dataset(source, CONFIG, [{n: tables[n] for n in ("particles", "tracker_hits")}], events_per_shard=8)
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        events = f"{SCORED.start}:{SCORED.stop}"
        done = server.run("truth", "import", "tracking", "--from", str(source), "--events", events)
        assert done.returncode == 0, done.stderr
        with Client(server.base_url, token_on(server.data_dir / "hub", "hanna")) as client:
            yield Site(source, server, client)


def test_score_equals_the_servers_but_for_secret_draws(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    columns = site.predictions(1)
    # Unsorted, without some rows: sorted by the engine, and with a warning.
    kept = np.random.default_rng(2).permutation(len(columns["hit_id"]))[:-50]
    pq.write_table(
        pa.table({name: column[kept] for name, column in columns.items()}), file, row_group_size=99
    )
    receipt = site.client.submit("tracking", file)
    there = site.client.submission(receipt.submission_id)
    here = collidium.score("tracking", file, truth_from=site.source, events=SCORED)
    for field in ("scores", "curves", "warnings", "rows", "scorer_version", "dataset", "dataset_revision"):
        assert getattr(here, field) == getattr(there, field), field
    assert here.truth_version != there.truth_version, "that of the server confirms no guess of its truth"
    assert here.uncertainties == pytest.approx(there.uncertainties, rel=0.4), "within their own accuracy"
    other = collidium.score("tracking", file, truth_from=site.source, events=SCORED, seed="another")
    assert (other.scores, other.curves) == (here.scores, here.curves)
    assert other.uncertainties != here.uncertainties
    assert here.curves
    assert here.warnings
    assert [*tmp_path.iterdir()] == [file]


def test_score_refuses_with_the_servers_problems(site: Site) -> None:
    columns = site.predictions(3)
    columns["track_id"][7] = -2
    columns["hit_id"][[30, 31]] = 10**6
    columns["event_id"][-1] = 99
    with pytest.raises(InvalidInput) as there:
        site.client.check("tracking", columns)
    with pytest.raises(InvalidInput) as here:
        collidium.score("tracking", columns, truth_from=site.source, events="4:40")
    assert here.value.errors == there.value.errors
    assert len(here.value.errors) > 1
    with pytest.raises(InvalidInput, match=r"hit_id: is missing; the columns are .* 1 more"):
        collidium.score("tracking", {"event_id": [4]}, truth_from=site.source)


def test_score_takes_files_tables_frames_and_arrays(site: Site, tmp_path: Path) -> None:
    import pandas
    import polars

    columns = site.predictions(4)
    file = tmp_path / "p.parquet"
    write_predictions(columns, file)
    given = (
        file,
        str(file),
        pa.table(columns),
        pandas.DataFrame(columns),
        polars.DataFrame(columns),
        columns,
    )
    # Without `events`: from the first to the last event of the predictions.
    made = [collidium.score("tracking", one, truth_from=site.source) for one in given]
    assert made == made[:1] * len(given)
    assert (made[0].events.start, made[0].events.stop) == (SCORED.start, SCORED.stop)


async def test_score_works_where_an_event_loop_runs(site: Site) -> None:
    steps: list[str] = []
    made = collidium.score(
        *("tracking", site.predictions(5)),
        truth_from=site.source,
        progress=lambda step, done, total: steps.append(f"{step} {done == total}"),
    )
    assert isinstance(made, LocalScores)
    assert (steps[-1], "truth True" in steps) == ("score True", True)


def test_score_needs_nothing_of_a_server(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    write_predictions(site.predictions(6), file)
    done = subprocess.run(
        [sys.executable, "-c", HOME, file, site.source, *OF_SERVERS], capture_output=True, text=True
    )
    here = collidium.score("tracking", file, truth_from=site.source)
    assert (done.stdout, done.stderr) == (f"{here.scores}\n", "")


def test_score_names_what_is_wrong_beyond_the_file(site: Site) -> None:
    columns = site.predictions(7)
    with pytest.raises(NotFound, match="no installed plugin provides a task 'trakking'"):
        collidium.score("trakking", columns, truth_from=site.source)
    with pytest.raises(InvalidInput, match="no option hits=heavy"):
        collidium.score("tracking", columns, truth_from=site.source, options={"hits": "heavy"})
    with pytest.raises(UnusableDataset, match="40"):
        collidium.score("tracking", columns, truth_from=site.source, events="4:41")
    with pytest.raises(CollidiumError, match=r"task tracking failed: ValueError\('no luck'\)"):
        collidium.score(Unlucky(), columns, truth_from=site.source)


class Unlucky(TrackingTask):
    def check(self, block: Block) -> list[Problem]:
        raise ValueError("no luck")


def test_the_example_of_score_is_true() -> None:
    assert doctest.testmod(import_module("collidium.client.local_scoring")) == (0, 7)


def test_events_without_truth_look_like_those_to_submit(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    write_predictions({"event_id": [90_000], "hit_id": [0], "track_id": [0]}, file)
    done = site.server.run("score", "tracking", str(file), "--from", str(site.source), "--config", CONFIG)
    assert done.returncode == 1
    hint = "these seem to be the evaluation events, whose truth only the server has: collidium submit"
    assert f"{hint} tracking" in " ".join(done.stderr.split())


def test_the_command_scores_and_draws(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    write_predictions(site.predictions(8), file)
    options = ("--from", str(site.source), "--config", CONFIG, "--plots", str(tmp_path / "curves"))
    done = site.server.run("score", "tracking", str(file), *options)
    assert done.returncode == 0, done.stderr
    here = collidium.score("tracking", file, truth_from=site.source, config=CONFIG)
    assert here.truth_version in done.stdout
    assert "trackml_weighted_efficiency  0." in done.stdout
    pictures = {path.name: path.read_bytes()[:4] for path in (tmp_path / "curves").iterdir()}
    assert pictures == {f"{curve.name}.png": b"\x89PNG" for curve in here.curves}


def test_a_score_without_curves_makes_no_folder(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    hits = datasets.load(EVENTS_DIRECTORY, tables="tracker_hits", events="0:1", rows="flat")
    columns = {"event_id": hits["event_id"], "hit_id": hits["hit_id"], "track_id": hits["particle_id"]}
    write_predictions(columns, file)
    options = ("--from", str(EVENTS_DIRECTORY), "--events", "0:1", "--plots", str(tmp_path / "curves"))
    done = site.server.run("score", "tracking", str(file), *options)
    assert done.returncode == 0, done.stderr
    assert "No plots: the score has no curves" in done.stderr
    assert not (tmp_path / "curves").exists()
    assert "unnamed" in done.stdout
