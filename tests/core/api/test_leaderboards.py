"""Filters and history of a leaderboard over HTTP, and the source of a submission's truth."""

from __future__ import annotations

import csv

import httpx
import pyarrow as pa
import pytest

from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, ok, pages_of, parquet, signed_in, spoiled

BOARD = "/v1/leaderboard/tracking"
ALL = {"all": "true"}
HISTORY = f"{BOARD}/history"
EFFICIENCY = "trackml_weighted_efficiency"

#: A server of its own: the leaderboard is these submissions.
PLATFORM: dict[str, str] = {}
#: In the order of submission: account, model, and how many of the hits are assigned.
SUBMITTED = (
    ("bea", "bea/helix", 0.6),
    ("carl", "lab/line", 0.5),
    ("bea", "lab/line", 0.8),
    ("carl", None, 0.9),
    ("bea", "bea/helix", 0.7),
)


@pytest.fixture(scope="module")
def ids(platform: ServerProcess, oracle: pa.Table) -> list[str]:
    """What was submitted to the module's server, each alone."""
    ids = []
    with signed_in(platform, "bea") as bea, signed_in(platform, "carl") as carl:
        for name, model, keep in SUBMITTED:
            client, query = {"bea": bea, "carl": carl}[name], {"model_repo": model} if model else {}
            sent = client.post(SUBMIT, params=query, content=parquet(spoiled(oracle, keep)))
            ids.append(ok(sent)["submission_id"])
    return ids


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({}, [(1, 3), (2, 2), (3, 4), (4, 0), (5, 1)]),
        ({"hub_username": "bea"}, [(2, 2), (3, 4), (4, 0)]),
        ({"model_repo": "lab/line"}, [(2, 2), (5, 1)]),
        ({"hub_username": "bea", "model_repo": "bea/helix"}, [(3, 4), (4, 0)]),
        ({"hub_username": "unknown' OR 1=1 --"}, []),
        ({"model_repo": "\u202e/\U0001f600"}, []),
    ],
)
def test_some_places_with_the_ranks_of_all(
    anonymous: httpx.Client, ids: list[str], query: dict[str, str], wanted: list[tuple[int, int]]
) -> None:
    pages = pages_of(anonymous, str(httpx.URL(BOARD, params={**query, **ALL, "limit": "1"})))
    found = [(place["rank"], place["submission_id"]) for page in pages for place in page]
    assert found == [(rank, ids[number]) for rank, number in wanted]


def test_a_part_of_the_leaderboard_is_not_mistaken_for_the_whole(
    anonymous: httpx.Client, ids: list[str]
) -> None:
    for _ in range(2):  # the second time from what was kept
        assert len(anonymous.get(BOARD, params=ALL).json()) == len(ids)
        part = anonymous.get(BOARD, params=ALL | {"hub_username": "carl"})
        assert len(part.json()) == 2
        same = anonymous.get(
            BOARD, params=ALL | {"hub_username": "carl"}, headers={"If-None-Match": part.headers["ETag"]}
        )
        assert same.status_code == 304


def test_the_history_shows_who_was_best_and_since_when(anonymous: httpx.Client, ids: list[str]) -> None:
    answer = anonymous.get(HISTORY)
    steps = ok(answer)
    assert [step["submission_id"] for step in steps] == [ids[0], ids[2], ids[3]]
    board = {place["submission_id"]: place for place in anonymous.get(BOARD, params=ALL).json()}
    for step in steps:
        place = board[step["submission_id"]]
        assert step["value"] == place["scores"][EFFICIENCY]
        assert step["uncertainty"] == place["uncertainties"][EFFICIENCY]
        for name in ("submitted_at", "hub_username", "model_repo", "verified_at"):
            assert step[name] == place[name]
    assert anonymous.get(HISTORY, params={"metric": EFFICIENCY, "limit": 1}).json() == steps[-1:]
    assert anonymous.get(HISTORY, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_history_falls_where_lower_is_better(anonymous: httpx.Client, ids: list[str]) -> None:
    values = [step["value"] for step in anonymous.get(HISTORY, params={"metric": "fake_rate"}).json()]
    assert values == sorted(set(values), reverse=True)
    assert values


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{HISTORY}?metric=beauty", 422),
        (f"{HISTORY}?metric=%00", 422),
        ("/v1/leaderboard/nothing/history", 404),
        (f"{BOARD}?hub_username=bea&pareto=true", 422),
    ],
)
def test_invalid_queries_are_rejected(anonymous: httpx.Client, path: str, status: int) -> None:
    answer = anonymous.get(path)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_a_submission_names_the_source_of_its_truth(anonymous: httpx.Client, ids: list[str]) -> None:
    kept = anonymous.get(f"/v1/submissions/{ids[0]}").json()
    assert (kept["dataset"], kept["dataset_revision"]) == ("ttbar_pu0", "local")


@pytest.mark.parametrize("query", [{}, ALL])
def test_results_are_all_places_in_one_file(
    anonymous: httpx.Client, ids: list[str], query: dict[str, str]
) -> None:
    places = anonymous.get(BOARD, params=query).json()
    where = "/v1/challenges/tracking/results"
    for result, place in zip(anonymous.get(where, params=query).json(), places, strict=True):
        assert result | place == result | {"pareto": place["pareto"]}, "fronts are of leaderboards alone"
    table = anonymous.get(where, params=query | {"format": "csv"})
    assert table.headers["Content-Disposition"] == "attachment; filename=tracking-results.csv"
    rows = list(csv.DictReader(table.text.splitlines()))
    for row, place in zip(rows, places, strict=True):
        assert (row["rank"], row["account"]) == (str(place["rank"]), place["hub_username"])
        assert float(row[EFFICIENCY]) == place["scores"][EFFICIENCY]
        assert float(row[f"{EFFICIENCY}_error"]) == place["uncertainties"][EFFICIENCY]
    assert anonymous.get("/v1/challenges/no-such/results").status_code == 404


def test_results_are_written_once_for_all_who_ask(
    platform: ServerProcess, anonymous: httpx.Client, ids: list[str]
) -> None:
    def hits() -> float:
        text = anonymous.get("/metrics", headers={"X-Admin-Token": platform.admin_token}).text
        line = 'collidium_cache_lookups_total{cache="results",result="hit"} '
        return next((float(one.removeprefix(line)) for one in text.splitlines() if line in one), 0.0)

    where, before = "/v1/challenges/tracking/results?format=csv", hits()
    first, second = anonymous.get(where), anonymous.get(where)
    assert (first.content, hits() > before) == (second.content, True)
    assert first.headers["Content-Disposition"] == second.headers["Content-Disposition"]
    unchanged = anonymous.get(where, headers={"If-None-Match": first.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_the_command_shows_the_same(platform: ServerProcess, ids: list[str]) -> None:
    def leaderboard(*arguments: str) -> tuple[int, str, str]:
        done = platform.run("leaderboard", "tracking", *arguments)
        return done.returncode, done.stdout, done.stderr

    code, output, _ = leaderboard("--user", "carl", "--model", "lab/line", "--all")
    assert (code, output.splitlines()[1].split()[:2]) == (0, ["5", "carl"])
    assert output.splitlines()[1].split()[-1] in ids
    code, output, _ = leaderboard("--history")
    assert (code, [line.split()[3] for line in output.splitlines()[1:]]) == (0, ["bea", "bea", "carl"])
    code, _, output = leaderboard("--history", "--pareto")
    assert code == 2
    assert "cannot be combined" in output
