"""The clients against a real server, and the errors that it returns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.core.servers import benchmark_server, write_oracle

from collidium.client import AsyncClient, Client
from collidium.errors import InvalidInput, NotFound, Unauthenticated
from collidium.testing.server import ServerProcess

_seeds = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with benchmark_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    """Perfect predictions in a file that was not sent before."""
    path = tmp_path / "oracle.parquet"
    write_oracle(path, seed=next(_seeds))
    return path


def test_one_client_acts_for_several_accounts(server: ServerProcess, client: Client) -> None:
    carol = client.acting_as(server.add_user("carol"))
    assert (carol.me().hub_username, client.me().hub_username) == ("carol", "alice")
    with pytest.raises(Unauthenticated):
        carol.admin_overview()


def test_check_submit_leaderboard_and_ledger(client: Client, oracle: Path) -> None:
    rows = pq.read_metadata(oracle).num_rows
    steps: list[int] = []
    assert client.check("tracking", oracle).rows == rows
    receipt = client.submit("tracking", oracle, "alice/oracle", lambda sent, total: steps.append(sent))
    assert steps[0] == 0
    assert steps[-1] == oracle.stat().st_size
    assert receipt.scores == {
        "trackml_weighted_efficiency": 1.0,
        "fake_rate": 0.0,
        "duplicate_rate": 0.0,
        "physics_eff_pt1": 1.0,
        "double_majority_eff_pt1": 1.0,
    }
    assert not receipt.deduplicated
    again = client.submit("tracking", oracle)
    assert (again.submission_id, again.deduplicated) == (receipt.submission_id, True)
    kept = client.submission(receipt.submission_id)
    assert (kept.task, kept.hub_username, kept.model_repo) == ("tracking", "alice", "alice/oracle")
    assert kept.rows == rows
    linked = client.set_links(kept.submission_id, code_url="https://a.example/", model_repo="alice/none")
    assert (linked.model_repo, linked.model_claim) == ("alice/none", "missing")
    assert client.set_links(kept.submission_id, model_repo=None).code_url == "https://a.example/"
    with pytest.raises(InvalidInput, match="code_url"):
        client.set_links(kept.submission_id, code_url="http://a.example/")
    (mine, *_) = client.submissions(task="tracking", limit=1)
    assert (mine.submission_id, mine.scores) == (kept.submission_id, kept.scores)
    place = next(p for p in client.leaderboard("tracking") if p.submission_id == receipt.submission_id)
    assert place.scores == receipt.scores
    earned = [e for e in client.transactions() if e.reason == "benchmark_best"]
    assert sum(entry.delta for entry in earned) == 100


async def test_predictions_in_memory_are_sent_as_a_file_would_be(
    server: ServerProcess, token: str, client: Client, oracle: Path
) -> None:
    table = pq.read_table(oracle)
    assert client.check("tracking", table).rows == table.num_rows
    assert client.check("tracking", table.to_pydict()).rows == table.num_rows
    async with AsyncClient(server.base_url, token) as asynchronous:
        assert (await asynchronous.check("tracking", table)).rows == table.num_rows
        with pytest.raises(NotFound):
            await asynchronous.set_links("0" * 32, paper_url=None)
    with pytest.raises(TypeError, match="write_predictions"):
        client.submit("tracking", 7)


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_invalid_name_is_not_sent(client: Client, name: str) -> None:
    with pytest.raises(NotFound, match="not a name"):
        client.task(name)


def test_a_large_file_is_refused_early_by_the_real_server(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    with path.open("wb") as file:
        file.truncate(256 * 1024**2)
    with Client(server.base_url, "wrong") as unauthenticated, pytest.raises(Unauthenticated):
        unauthenticated.submit("tracking", path)
