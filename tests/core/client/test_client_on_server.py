"""Both clients against a real server: every method, and the errors that a server really gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.servers import benchmark_server, write_oracle

from collidium.client import AsyncClient, Client
from collidium.errors import Forbidden, InvalidInput, NotFound, Unauthenticated
from collidium.testing.server import ServerProcess

_seeds = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with benchmark_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    return server.add_user("alice")


@pytest.fixture
def client(server: ServerProcess, token: str) -> Iterator[Client]:
    with Client(server.base_url, token, server.admin_token) as alice:
        yield alice


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    """Perfect predictions in a file that nobody sent before."""
    path = tmp_path / "oracle.parquet"
    write_oracle(path, seed=next(_seeds))
    return path


def test_me(client: Client) -> None:
    account = client.me()
    assert account.hub_username == "alice"
    assert account.credits >= 10
    assert isinstance(account.credits, Decimal)
    assert abs((datetime.now(UTC) - account.created_at).total_seconds()) < 600
    assert not account.banned


def test_one_client_acts_for_several_accounts(server: ServerProcess, client: Client) -> None:
    carol = client.acting_as(server.add_user("carol"))
    assert (carol.me().hub_username, client.me().hub_username) == ("carol", "alice")
    with pytest.raises(Unauthenticated):
        carol.admin_overview()


def test_tasks(client: Client) -> None:
    cards = {card.name: card for card in client.tasks()}
    card = client.task("tracking")
    assert cards["tracking"] == card
    assert (card.eval_events.start, card.eval_events.stop) == (3, 5)
    assert card.accepts_submissions
    assert card.primary_metric == card.metrics[0].name == "trackml_weighted_efficiency"
    assert card.metrics[0].reward == 50


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
        client.submit("tracking", 7)  # type: ignore[arg-type]  # what is tested


def test_pages_of_the_ledger(client: Client, server: ServerProcess) -> None:
    client.me()
    for amount in ("0.125", "2", "-0.5"):
        client.admin_grant("alice", Decimal(amount), "paging")
    everything = client.transactions().items
    paged, cursor = [], None
    while True:
        page = client.transactions(limit=2, cursor=cursor)
        paged += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
        assert len(page) == 2
    assert tuple(paged) == everything
    assert [entry.delta for entry in everything[:3]] == [Decimal("-0.5"), Decimal(2), Decimal("0.125")]
    assert everything[0].note == "paging"
    assert everything[0].balance_after == client.me().credits


def test_operators(client: Client) -> None:
    granted = client.admin_grant("alice", Decimal("1.5"), "for testing")
    assert granted.new_balance == client.me().credits == client.admin_account("alice").credits
    assert client.admin_ban("mallory").banned
    assert not client.admin_ban("mallory", False).banned
    assert client.admin_freeze().submissions_frozen
    assert client.ready().submissions_frozen
    assert not client.admin_freeze(False).submissions_frozen
    deeds = client.admin_audit(limit=1)
    assert len(deeds) == 1
    assert deeds[0].target
    assert client.admin_audit(limit=1, cursor=deeds.next_cursor)[0].id != deeds[0].id


def test_a_banned_account_is_told(server: ServerProcess, client: Client) -> None:
    mallory = server.add_user("mallory")
    client.admin_ban("mallory")
    with Client(server.base_url, mallory) as banned, pytest.raises(Forbidden):
        banned.me()


def test_health(client: Client) -> None:
    assert client.health().status == "ok"
    assert client.ready().status == "ready"
    assert client.ready().plugins_failed == ()


def test_problems_in_a_file_are_all_told(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"event_id": [3, 3], "hit_id": ["a", "b"], "extra": [1, 2]}), path)
    for call in (client.check, client.submit):
        with pytest.raises(InvalidInput) as caught:
            call("tracking", path)
        assert {problem.get("column") for problem in caught.value.errors} == {"hit_id", "track_id", "extra"}
        assert caught.value.request_id


def test_what_is_not_there(client: Client, oracle: Path) -> None:
    for call in (
        lambda: client.task("nothing"),
        lambda: client.leaderboard("nothing"),
        lambda: client.submission("nothing"),
        lambda: client.submit("nothing", oracle),
        lambda: client.task("no/thing ü?"),
        lambda: client.admin_account("nobody"),
    ):
        with pytest.raises(NotFound):
            call()


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_is_none_is_not_sent(client: Client, name: str) -> None:
    with pytest.raises(NotFound, match="not a name"):
        client.task(name)


def test_wrong_secrets(server: ServerProcess, oracle: Path) -> None:
    with Client(server.base_url, "wrong", "wrong") as stranger:
        with pytest.raises(Unauthenticated):
            stranger.me()
        with pytest.raises(Unauthenticated):
            stranger.submit("tracking", oracle)
        with pytest.raises(Unauthenticated):
            stranger.admin_freeze()


def test_a_large_file_is_refused_early_by_the_real_server(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    with path.open("wb") as file:
        file.truncate(256 * 1024**2)
    with Client(server.base_url, "wrong") as stranger, pytest.raises(Unauthenticated):
        stranger.submit("tracking", path)


async def test_the_async_client_does_the_same(server: ServerProcess, token: str, oracle: Path) -> None:
    steps: list[int] = []
    async with AsyncClient(server.base_url, token, server.admin_token) as client:
        assert (await client.me()).hub_username == "alice"
        assert [card.name for card in await client.tasks()]
        assert (await client.task("tracking")).accepts_submissions
        assert (await client.check("tracking", oracle)).valid
        receipt = await client.submit("tracking", oracle, progress=lambda sent, total: steps.append(sent))
        assert receipt.scores["trackml_weighted_efficiency"] == 1.0
        assert steps[-1] == oracle.stat().st_size
        assert (await client.submission(receipt.submission_id)).sha256 == receipt.sha256
        assert (await client.submissions(limit=1)).items[0].submission_id == receipt.submission_id
        assert len(await client.leaderboard("tracking", limit=1)) == 1
        assert len(await client.transactions(limit=1)) == 1
        assert (await client.admin_grant("alice", Decimal(1), "x")).new_balance > 0
        assert (await client.admin_account("alice")).hub_username == "alice"
        assert not (await client.admin_freeze(False)).submissions_frozen
        assert (await client.admin_ban("trudy")).banned
        assert len(await client.admin_audit()) >= 3
        assert (await client.ready()).status == "ready"
        with pytest.raises(NotFound):
            await client.task("nothing")
