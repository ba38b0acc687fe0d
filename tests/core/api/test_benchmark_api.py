"""The benchmark loop on real events, through HTTP."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyarrow as pa
import pytest
from tests.waiting import eventually

from collidium.testing.server import ServerProcess
from collidium_tasks.tracking import TrackingTask

from .conftest import SUBMIT, SignIn, credits_of, name_of, ok, parquet, refused, spoiled

BOARD = "/v1/leaderboard/tracking?all=true"


def submit(client: httpx.Client, table: pa.Table) -> httpx.Response:
    return client.post(SUBMIT, content=parquet(table))


def cursor_of(
    rank: float = 1, score: float = 1, at: str = "2026-01-01T00:00:00Z", submission: str = "a" * 32
) -> str:
    """A cursor of a leaderboard."""
    keys = json.dumps([rank, rank, score, at, submission]).encode()
    return base64.urlsafe_b64encode(keys).decode().rstrip("=")


def test_the_loop(caller: SignIn, oracle: pa.Table) -> None:
    alice = caller("alice")
    worthless = submit(alice, spoiled(oracle, 0.0)).json()
    assert worthless["scores"]["trackml_weighted_efficiency"] == worthless["credits_earned"] == 0
    receipt = ok(submit(alice, oracle))
    assert receipt["scores"] == {
        "trackml_weighted_efficiency": 1.0,
        "fake_rate": 0.0,
        "duplicate_rate": 0.0,
        "physics_eff_pt1": 1.0,
        "double_majority_eff_pt1": 1.0,
    }
    errors = receipt["uncertainties"]
    assert errors.pop("trackml_weighted_efficiency") == 0
    assert len(errors) == 4
    assert all(0 < error < 0.2 for error in errors.values()), errors
    assert receipt["credits_earned"] == 100
    assert receipt["deduplicated"] is False
    assert len(receipt["sha256"]) == 64
    assert alice.get("/v1/me").json()["credits"] == 110
    ledger = alice.get("/v1/me/transactions").json()
    assert [(entry["delta"], entry["reason"]) for entry in ledger] == [
        (50, "benchmark_best"),
        (50, "benchmark_best"),
        (10, "signup_grant"),
    ]
    (place,) = alice.get("/v1/leaderboard/tracking").json()
    assert (place["rank"], place["hub_username"], place["credits_earned"]) == (1, "alice", 100)
    assert place["submission_id"] == receipt["submission_id"]
    for version in ("scorer_version", "truth_version"):
        assert place[version] == receipt[version]
    record = httpx.get(f"{alice.base_url}/v1/submissions/{receipt['submission_id']}", trust_env=False).json()
    assert (record["sha256"], record["rows"]) == (receipt["sha256"], oracle.num_rows)


def test_the_card_shows_the_truths_events_and_floors(alice: httpx.Client) -> None:
    card = next(card for card in alice.get("/v1/benchmark/tasks").json() if card["name"] == "tracking")
    assert card == alice.get("/v1/benchmark/tracking").json()
    assert card["eval_events"] == {"start": 3, "stop": 5}
    assert card["dataset"] == "ttbar_pu0"
    assert card["accepts_submissions"] is True
    assert 0 < card["largest_file_bytes"] < 256 * 1024**2
    metrics = {metric["name"]: metric for metric in card["metrics"]}
    assert list(metrics) == [metric.name for metric in TrackingTask.card.metrics]
    assert 0 < metrics["trackml_weighted_efficiency"]["floor"] < 1
    assert metrics["fake_rate"]["reward"] == 0


def test_scores_have_errors_and_draws_are_not_shown(alice: httpx.Client, oracle: pa.Table) -> None:
    answer = submit(alice, spoiled(oracle, 0.7))
    receipt = answer.json()
    errors = receipt["uncertainties"]
    assert set(errors) == set(receipt["scores"])
    assert 0 < errors["trackml_weighted_efficiency"] < 0.1
    board = alice.get(BOARD, params={"hub_username": name_of(alice)})
    (place,) = board.json()
    record = alice.get(f"/v1/submissions/{receipt['submission_id']}")
    assert place["uncertainties"] == record.json()["uncertainties"] == errors
    assert submit(alice, spoiled(oracle, 0.7)).json()["uncertainties"] == errors
    assert not any("replicates" in shown.text for shown in (answer, board, record))


def test_hits_left_out_count_against_a_submission(alice: httpx.Client, oracle: pa.Table) -> None:
    receipt = submit(alice, oracle.slice(0, 100)).json()
    assert receipt["scores"]["trackml_weighted_efficiency"] < 0.1
    assert f"{oracle.num_rows - 100:,} of {oracle.num_rows:,} hits have no prediction" in receipt["warnings"]


def test_a_form_part_works_like_a_body(alice: httpx.Client, oracle: pa.Table) -> None:
    files = {"predictions": ("p.parquet", parquet(oracle), "application/octet-stream")}
    ok(alice.post(SUBMIT, files=files, data={"model_repo": "alice/finder"}))
    (place,) = alice.get(BOARD, params={"hub_username": name_of(alice)}).json()
    assert place["model_repo"] == "alice/finder"
    assert submit(alice, oracle).json()["deduplicated"] is True


def test_a_check_keeps_nothing_and_shows_no_score(alice: httpx.Client, oracle: pa.Table) -> None:
    checked = ok(alice.post("/v1/benchmark/tracking/check", content=parquet(oracle)))
    assert (checked["valid"], checked["rows"]) == (True, oracle.num_rows)
    assert "scores" not in checked
    assert alice.get(BOARD, params={"hub_username": name_of(alice)}).json() == []


def test_eight_at_once_never_pay_one_best_twice_nor_lower_it(caller: SignIn, oracle: pa.Table) -> None:
    clients = [caller(f"user{n}") for n in range(8)]
    tables = [
        spoiled(oracle, keep, seed=n) for n, keep in enumerate((0.95, 0.9, 0.8, 1.0, 0.7, 0.97, 0.85, 1.0))
    ]
    with ThreadPoolExecutor(8) as threads:
        receipts = [answer.json() for answer in threads.map(submit, clients, tables)]
    in_order = sorted(
        (clients[0].get(f"/v1/submissions/{receipt['submission_id']}").json() for receipt in receipts),
        key=lambda record: record["submitted_at"],
    )
    listed = clients[0].get("/v1/benchmark/tracking").json()["metrics"]
    best = {metric["name"]: metric["floor"] for metric in listed if metric["higher_is_better"]}
    rewards = {metric["name"]: metric["reward"] for metric in listed}
    for record in in_order:
        earned = 0
        for name in best:
            if record["scores"][name] > best[name]:
                best[name] = record["scores"][name]
                earned += rewards[name]
        assert record["credits_earned"] == earned
    assert set(best.values()) == {1.0}
    for client, receipt in zip(clients, receipts, strict=True):
        assert client.get("/v1/me").json()["credits"] == 10 + receipt["credits_earned"]
    assert len(clients[0].get(BOARD).json()) == 8


def test_the_same_file_at_once_is_one_submission_of_an_account(caller: SignIn, oracle: pa.Table) -> None:
    alice = caller("alice")

    def submit_in_turn(_: int) -> httpx.Response:
        """Some of eight at once are too many for one account: they wait."""
        answers: list[httpx.Response] = []

        def taken() -> bool:
            answers.append(submit(alice, oracle))
            return answers[-1].status_code != 429

        eventually(taken, 60)
        return answers[-1]

    with ThreadPoolExecutor(8) as threads:
        receipts = [answer.json() for answer in threads.map(submit_in_turn, range(8))]
    assert len({receipt["submission_id"] for receipt in receipts}) == 1
    assert sum(not receipt["deduplicated"] for receipt in receipts) == 1
    assert credits_of(alice) == 110
    other = submit(caller("bob"), oracle).json()
    assert (other["deduplicated"], other["credits_earned"]) == (False, 0)
    assert [(place["rank"], place["hub_username"]) for place in alice.get(BOARD).json()] == [
        (1, "alice"),
        (1, "bob"),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/leaderboard/nothing",
        "/v1/benchmark/nothing",
        "/v1/submissions/nothing",
        "/v1/submissions/%00",
        "/v1/leaderboard/%00",
        "/v1/benchmark/" + "x" * 500,
        "/v1/leaderboard/" + "x" * 65,
        "/v1/leaderboard/%ed%a0%80",
        "/v1/submissions/" + "x" * 33,
        "/v1/submissions/%ff",
        "/v1/nothing",
    ],
)
def test_unknown_addresses_are_404(alice: httpx.Client, path: str) -> None:
    answer = alice.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "cursor",
    [
        *("x", "e30", "WzFd", "WzEsMSwiMjAyNi0wMS0wMSIsIngiXQ", "WzEsTmFOLCIiLCIiXQ", "a" * 600),
        cursor_of(submission="\ud800" * 32),
        cursor_of(submission="a" * 290),
        cursor_of(submission="x"),
        cursor_of(score=float("nan")),
        cursor_of(score=float("inf")),
        cursor_of(score=10**400),
        cursor_of(rank=10**300),
        cursor_of(rank=0),
        cursor_of(rank=float("inf")),
        cursor_of(at="0001-01-01T00:00:00+14:00"),
        cursor_of(at="9999-12-31T23:59:59-14:00"),
        cursor_of(at="2026-01-01T00:00:00"),
    ],
)
def test_a_made_up_cursor_is_422(alice: httpx.Client, cursor: str) -> None:
    assert alice.get(f"{BOARD}&cursor={cursor}").status_code == 422


def test_a_cursor_at_the_end_of_time_is_a_cursor(alice: httpx.Client) -> None:
    for at in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"):
        assert alice.get(f"{BOARD}&cursor={cursor_of(at=at)}").status_code == 200


@pytest.mark.parametrize("task", ["nothing", "x" * 65, "x" * 200, "%ed%a0%80"])
def test_a_submission_to_no_task_is_404_before_the_body(
    alice: httpx.Client, oracle: pa.Table, task: str
) -> None:
    for verb in ("submit", "check"):
        assert alice.post(f"/v1/benchmark/{task}/{verb}", content=parquet(oracle)).status_code == 404


def test_a_mistyped_name_suggests_the_nearest(alice: httpx.Client) -> None:
    for answer in (
        alice.post("/v1/benchmark/trackin/submit", content=b"x"),
        alice.get("/v1/challenges/trackin/quota"),
    ):
        refused(answer, 404, "did you mean 'tracking'?")


def test_without_truth_the_task_says_so(server: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {server.add_user('alice')}"}
    answer = httpx.post(f"{server.base_url}{SUBMIT}", content=b"x", headers=headers, trust_env=False)
    assert answer.status_code == 503
    assert "it has no truth yet" in answer.json()["detail"]
    assert "collidium truth" not in answer.json()["detail"], "users import none"
    card = httpx.get(f"{server.base_url}/v1/benchmark/tracking", trust_env=False).json()
    assert card["accepts_submissions"] is False
    assert card["largest_file_bytes"] is None
    assert card["eval_events"] == {"start": 90000, "stop": 100000}


def test_a_removed_task_accepts_nothing_and_keeps_its_scores(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table
) -> None:
    submission = submit(alice, oracle).json()["submission_id"]
    assert platform.run("task", "remove", "tracking").returncode == 0
    try:
        assert submit(alice, oracle).status_code == 404
        assert alice.get(f"/v1/submissions/{submission}").status_code == 200
        assert alice.get(BOARD).status_code == 200
    finally:
        platform.run("task", "add", "tracking")
    assert submit(alice, oracle).json()["deduplicated"] is True


def test_an_unchanged_leaderboard_is_not_sent_again(alice: httpx.Client, oracle: pa.Table) -> None:
    before = alice.get(BOARD).headers["ETag"]
    assert alice.get(BOARD, headers={"If-None-Match": before}).status_code == 304
    submit(alice, oracle)
    after = alice.get(BOARD, headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.headers["ETag"] != before
    submit(alice, oracle)
    assert alice.get(BOARD, headers={"If-None-Match": after.headers["ETag"]}).status_code == 304
