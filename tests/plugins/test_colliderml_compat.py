"""The public client with this backend, and requests that the client itself never sends."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.documents import ROOT, code_blocks

from collidium.contracts.tables import flatten
from collidium.contracts.task import EventRange
from collidium.datasets.publishing.preparing import Publication
from collidium.datasets.publishing.publication import publish
from collidium.demo import EVENTS_DIRECTORY
from collidium.hub.client import Hub
from collidium.order import PRESETS
from collidium.testing.server import ServerProcess
from collidium_plugins.colliderml_compat.routes import NAMES, PREFIX, ROUTES

from .public_client import CLIENT

DOCUMENT = ROOT / "docs/public-client.md"
#: The only dataset that the client's scorer knows.
DATASET = "CERN/ColliderML-Release-1"
CONFIG = "ttbar_pu0"
EVALUATION = EventRange(3, 5)
ORDER = {"channel": "ttbar", "events": 10, "pileup": 0, "seed": 42}

serial = count()


# -- a backend whose hits have no ids of their own, as in the public release ---------------------------


@dataclass(frozen=True, slots=True)
class Backend:
    """A server with truth and a hub that has the events, for all callers."""

    server: ServerProcess

    @property
    def url(self) -> str:
        return self.server.base_url + PREFIX

    @property
    def hub(self) -> str:
        return f"{self.server.base_url}/hub"

    def token(self) -> str:
        """Of an account of its own."""
        return self.server.add_user(f"ada{next(serial)}")

    def http(self, token: str) -> httpx.Client:
        return self._http({"Authorization": f"Bearer {token}"})

    def operator(self) -> httpx.Client:
        return self._http({"X-Admin-Token": self.server.admin_token})

    def _http(self, headers: dict[str, str]) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)


def events_without_hit_ids(directory: Path) -> Path:
    """The demo's events: a hit is known by its place in its event."""
    made = directory / "events"
    shutil.copytree(EVENTS_DIRECTORY, made)
    hits = pq.read_table(made / "tracker_hits.parquet")
    pq.write_table(hits.drop_columns(["hit_id"]), made / "tracker_hits.parquet")
    (directory / "README.md").write_text("Five events.\n")
    return made


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    directory = tmp_path_factory.mktemp("backend")
    events = events_without_hit_ids(directory)
    with ServerProcess(directory / "server", env={"PLATFORM_MOCK_SECONDS": "0.1"}) as server:
        for task in ("tracking", "tracking_latency"):
            done = server.run(
                *("truth", "import", task, "--from", str(events)),
                *("--config", CONFIG, "--events", str(EVALUATION)),
            )
            assert done.returncode == 0, done.stderr
        made = Backend(server)
        host = server.add_user("CERN")
        # With its truth: the client's own scorer wants it.
        asyncio.run(publish(Publication(events, DATASET, config=CONFIG), Hub(made.hub, host)))
        yield made


@pytest.fixture
def token(backend: Backend) -> str:
    return backend.token()


@pytest.fixture
def caller(backend: Backend, token: str) -> Iterator[httpx.Client]:
    with backend.http(token) as client:
        yield client


@pytest.fixture
def operator(backend: Backend) -> Iterator[httpx.Client]:
    with backend.operator() as client:
        yield client


def oracle(**more: pa.Array[Any]) -> pa.Table:
    """Perfect predictions as the client's scorer has them: a track is called as its particle."""
    hits = flatten(pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet"), ["particle_id"])
    events = hits.column("event_id").to_numpy()
    places = np.concatenate([np.arange(size) for size in np.unique(events, return_counts=True)[1]])
    hits = hits.append_column("hit_id", pa.array(places)).rename_columns(["event_id", "track_id", "hit_id"])
    hits = hits.filter(pa.array((events >= EVALUATION.start) & (events < EVALUATION.stop)))
    hits = hits.append_column("salt", pa.array(np.full(hits.num_rows, next(serial))))
    for name, values in more.items():
        hits = hits.append_column(name, values)
    return hits


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def sent(table: pa.Table) -> dict[str, Any]:
    return {"files": {"predictions": ("p.parquet", parquet(table), "application/octet-stream")}}


# -- the client itself -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Person:
    """A user of the client, in a directory of their own."""

    programs: Path
    directory: Path
    environment: dict[str, str]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=self.directory,
            env=self.environment,
            timeout=300,
        )

    def python(self, code: str) -> Any:
        """What the code printed last, as JSON."""
        done = self.run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def person(
    backend: Backend, token: str, programs: Path, tmp_path: Path, isolated_environment: dict[str, str]
) -> Person:
    environment = isolated_environment | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "HF_HOME": str(tmp_path / "huggingface"),
        "HF_ENDPOINT": backend.hub,
        "HF_TOKEN": token,
        "COLLIDERML_BACKEND": backend.url,
        "COLLIDERML_DATA_DIR": str(tmp_path / "data"),
        "COLLIDERML_TRACKING_DATASET": CONFIG,
        "COLLIDERML_TRACKING_EVAL_RANGE": str(EVALUATION),
    }
    return Person(programs, tmp_path, environment)


def test_the_client_orders_events_and_waits_for_them(person: Person) -> None:
    submitted, looked_up, done, balance = person.python(
        """
import json
from dataclasses import asdict
from colliderml import remote
submitted = remote.submit(channel="zmumu", events=10, pileup=0)
looked_up = remote.status(submitted.request_id)
done = remote.wait_for(submitted.request_id, poll_interval=0.1, timeout=60)
print(json.dumps([*map(asdict, (submitted, looked_up, done)), remote.balance()]))
"""
    )
    assert submitted["state"] == "queued"
    assert submitted["credits_charged"] > 0
    assert submitted["estimated_completion_seconds"] > 0
    assert {field: looked_up[field] for field in ("channel", "events", "pileup")} == {
        "channel": "zmumu",
        "events": 10,
        "pileup": 0,
    }
    assert done["state"] == "completed"
    assert done["raw"]["id"] == submitted["request_id"]
    assert done["output_hf_repo"].startswith(f"{done['raw']['hf_username']}/")
    assert balance == pytest.approx(10 - submitted["credits_charged"])


def test_client_submits_predictions_with_extra_columns(person: Person) -> None:
    own_scores, receipt, again, tracks = person.python(
        """
import json
from colliderml import tasks
from colliderml.tasks.tracking.baselines.oracle import perfect_oracle_predictions
predictions = perfect_oracle_predictions(tasks.get("tracking").load_truth_hits())
predictions = predictions.append_column("majority_particle_id", predictions["track_id"])
own_scores = tasks.evaluate("tracking", predictions)
receipts = [tasks.submit("tracking", predictions, model_repo_id="ada/model") for _ in range(2)]
tracks = set(map(tuple, predictions.select([0, 2]).to_pandas().values.tolist()))
print(json.dumps([own_scores, *receipts, [len(tracks), len({track for _, track in tracks})]]))
"""
    )
    assert own_scores["trackml_eff"] == 1.0
    assert {name: receipt["scores"][name] for name in ("trackml_eff", "fake_rate", "dup_rate")} == {
        "trackml_eff": 1.0,
        "fake_rate": 0.0,
        "dup_rate": 0.0,
    }
    assert receipt["credits_earned"] > 0
    assert not receipt["deduplicated"]
    assert again == {**receipt, "deduplicated": True}
    with_event, without = tracks
    assert without < with_event, "tracks of different events share their ids, or this shows nothing"


def test_tasks_and_presets_are_those_of_the_client(person: Person, caller: httpx.Client) -> None:
    tasks, presets = person.python(
        """
import json
from colliderml import simulate, tasks
known = map(tasks.get, tasks.list_tasks())
cards = {task.name: [task.metrics, task.higher_is_better] for task in known}
presets = {name: [p.channel, p.events, p.pileup] for name, p in simulate.load_presets().items()}
print(json.dumps([cards, presets]))
"""
    )
    cards = caller.get("/v1/benchmark/tasks").json()
    assert {card["name"]: [card["metrics"], card["higher_is_better"]] for card in cards} == tasks
    ours = {name: [order.channel, order.events, order.pileup] for name, order in PRESETS.items()}
    assert presets.items() <= ours.items()


def test_the_client_reports_rejected_orders(
    person: Person, operator: httpx.Client, caller: httpx.Client
) -> None:
    code = """
import json, os
from colliderml import remote
def refusal(**order):
    try:
        remote.submit(**{"channel": "ttbar", "events": 10, "pileup": 200, **order})
    except RuntimeError as error:
        return str(error)
costly = refusal(events=1000)
wrong = refusal(channel="no such channel")
os.environ["HF_TOKEN"] = "unknown"
print(json.dumps([costly, wrong, refusal()]))
"""
    costly, wrong, unknown = person.python(code)
    assert "credits" in costly
    assert not costly.startswith("Backend error")
    assert wrong.startswith("Backend error 422")
    assert unknown.startswith("Authentication failed")
    name = caller.get("/v1/me").json()["hf_username"]
    assert operator.post("/admin/ban", json={"hf_username": name}).json()["banned"] is True
    banned, *_ = person.python(code)
    assert banned.startswith("Backend error 403")


def test_the_commands_of_the_document_work(backend: Backend, person: Person) -> None:
    (person.directory / "ada.token").write_text(person.environment["HF_TOKEN"] + "\n")
    pq.write_table(oracle(), person.directory / "predictions.parquet")
    script = ["set -euo pipefail"]
    for block in code_blocks(DOCUMENT):
        if block.language == "bash" and block.remark != "install":
            script.append(block.code)
        elif block.language == "python":
            script.append(f"python - <<'CODE'\n{block.code}CODE")
    shown = "\n".join(script)
    assert "colliderml balance" in shown
    assert CLIENT in DOCUMENT.read_text()
    for name in ("HF_ENDPOINT", "HF_TOKEN", *(n for n in person.environment if n.startswith("COLLIDERML_"))):
        del person.environment[name]
    done = person.run("bash", "-c", shown.replace("http://127.0.0.1:8000", backend.server.base_url))
    assert done.returncode == 0, done.stderr
    request_id = done.stdout.split("Poll with: colliderml status ")[1].split()[0]
    assert "'trackml_eff': 1.0" in done.stdout
    person.environment.update({"HF_TOKEN": (person.directory / "ada.token").read_text().strip()})
    status = person.run("colliderml", "status", request_id, "--backend-url", backend.url)
    assert f"request_id:  {request_id}" in status.stdout
    assert person.run("colliderml", "status", "none", "--backend-url", backend.url).returncode == 1


def test_the_document_has_the_measured_differences(programs: Path) -> None:
    script = [sys.executable, "peer.py", "--differences", "--python", str(programs / "python")]
    done = subprocess.run(script, check=False, capture_output=True, text=True, cwd=ROOT / "perf", timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout in DOCUMENT.read_text()


def test_the_document_has_every_call_and_every_name() -> None:
    page = DOCUMENT.read_text()
    for route in ROUTES:
        assert f"| `{route.method} {route.path}` |" in page
    for here, there in NAMES.items():
        assert f"| `{here}` " in page
        assert f"| `{there}` |" in page


# -- what else is called ---------------------------------------------------------------------------------


def test_requests_are_listed_in_the_clients_names(caller: httpx.Client) -> None:
    answer = caller.post("/v1/simulate", json=ORDER | {"seed": next(serial) + 1000})
    ordered = answer.json()
    assert answer.headers["Location"] == f"{PREFIX}/v1/requests/{ordered['id']}"
    assert caller.get("/v1/requests", params={"state": "failed"}).json() == []
    (listed,) = caller.get("/v1/requests").json()
    assert listed["id"] == listed["request_id"] == ordered["id"]
    assert not {"hub_username", "output_hub_repo"} & set(listed)
    assert caller.get("/v1/requests", params={"state": "submitted"}).status_code == 200
    assert caller.get("/v1/requests", params={"state": "nonsense"}).status_code == 422


def test_an_order_without_pileup_has_none(caller: httpx.Client) -> None:
    order = {"channel": "ttbar", "events": 10, "seed": next(serial) + 1000}
    answer = caller.post("/v1/simulate", json=order)
    assert (answer.status_code, answer.json()["pileup"]) == (202, 0)
    found = caller.get(f"/v1/requests/{UUID(answer.json()['request_id'])}")
    assert (found.status_code, found.json()["seed"]) == (200, order["seed"])


@pytest.mark.parametrize("limit", ["1001", "9" * 5000])
def test_a_limit_above_the_maximum_is_cut(caller: httpx.Client, operator: httpx.Client, limit: str) -> None:
    for client, path in (
        (caller, "/v1/requests"),
        (caller, "/v1/me/transactions"),
        (caller, "/v1/leaderboard/tracking"),
        (operator, "/admin/usage"),
    ):
        assert client.get(path, params={"limit": limit}).status_code == 200
        assert client.get(path, params={"limit": "0"}).status_code == 422
    assert operator.get("/admin/analytics/daily", params={"days": limit}).status_code == 200


def test_pagination_links_are_below_the_mount(caller: httpx.Client, operator: httpx.Client) -> None:
    name = caller.get("/v1/me").json()["hf_username"]
    granted = operator.post("/admin/grant", json={"hf_username": name, "delta": 2.5}).json()
    assert granted["hf_username"] == name
    assert granted["new_balance"] == 12.5
    page = caller.get("/v1/me/transactions", params={"limit": 1})
    assert page.links["next"]["url"].startswith(f"{PREFIX}/v1/me/transactions?")
    assert [line["delta"] for line in page.json()] == [2.5]
    following = httpx.URL(caller.base_url).join(page.links["next"]["url"])
    assert [line["reason"] for line in caller.get(following).json()] == ["signup_grant"]


def test_tasks_and_leaderboard_have_the_clients_shapes(caller: httpx.Client) -> None:
    card = next(card for card in caller.get("/v1/benchmark/tasks").json() if card["name"] == "tracking")
    assert card["dataset"] == CONFIG
    assert card["eval_event_range"] == [EVALUATION.start, EVALUATION.stop]
    receipt = caller.post("/v1/benchmark/tracking/submit", **sent(oracle())).json()
    board = caller.get("/v1/leaderboard/tracking")
    (place,) = [place for place in board.json() if place["id"] == receipt["submission_id"]]
    assert place["scores"] == receipt["scores"]
    assert place["hf_username"] == caller.get("/v1/me").json()["hf_username"]
    assert place["is_baseline"] is False
    unchanged = caller.get("/v1/leaderboard/tracking", headers={"If-None-Match": board.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_self_reported_submissions_have_no_rank(caller: httpx.Client) -> None:
    table = oracle()
    measured = table.append_column("seconds", pa.array([0.1] * table.num_rows))
    receipt = caller.post("/v1/benchmark/tracking_latency/submit", **sent(measured)).json()
    board = caller.get("/v1/leaderboard/tracking_latency").json()
    assert receipt["submission_id"] not in {place["id"] for place in board}
    (apart,) = caller.get("/v1/leaderboard/tracking_latency/self-reported").json()
    assert (apart["id"], apart["rank"], apart["scores"]["wallclock_s"]) == (
        receipt["submission_id"],
        None,
        0.2,
    )
    assert receipt["credits_earned"] == 0


def test_the_public_datasets_with_the_platforms_tag_are_listed(caller: httpx.Client) -> None:
    assert caller.get("/v1/datasets").json() == [CONFIG]


def test_calls_of_accounts_need_a_token_before_their_input(backend: Backend) -> None:
    public = {"/healthz", "/v1/datasets", "/v1/benchmark/tasks"}
    with backend.http("wrong") as wrong, httpx.Client(base_url=backend.url, trust_env=False) as anonymous:
        for route in ROUTES:
            if route.path not in public and not route.path.startswith("/v1/leaderboard/"):
                for client in (anonymous, wrong):
                    refused = client.request(route.method, f"{route.path}?limit=x", content=b"{")
                    assert refused.status_code == 401, route


def test_operator_calls_are_for_operators_alone(operator: httpx.Client, caller: httpx.Client) -> None:
    for route in ROUTES:
        if route.path.startswith("/admin/"):
            assert caller.request(route.method, route.path, content=b"{").status_code == 401
    try:
        assert operator.post("/admin/freeze").json() == {"submissions_frozen": True}
        refused = caller.post("/v1/simulate", json=ORDER | {"seed": next(serial) + 1000})
        assert refused.status_code == 503
    finally:
        assert operator.post("/admin/freeze?frozen=false").json() == {"submissions_frozen": False}
    assert caller.post("/v1/simulate", json=ORDER | {"seed": next(serial) + 1000}).status_code == 202
    name = caller.get("/v1/me").json()["hf_username"]
    (row,) = [row for row in operator.get("/admin/usage").json() if row["hf_username"] == name]
    assert row["n_requests"] == 1
    assert row["node_hours"] > 0
    channels = {row["channel"]: row for row in operator.get("/admin/analytics/channels").json()}
    assert channels["ttbar"]["n"] > 0
    today = operator.get("/admin/analytics/daily", params={"days": 1}).json()[-1]
    assert today == {
        "day": f"{datetime.now(UTC):%Y-%m-%d}",
        "n_requests": sum(row["n"] for row in channels.values()),
        "node_hours": pytest.approx(sum(row["node_hours"] for row in channels.values())),
    }
    failures = operator.get("/admin/analytics/failures").json()
    assert set(failures) == {"total", "failed", "failure_rate"}
    assert 0 <= failures["failure_rate"] <= 1
    wrong = operator.post("/admin/grant", json={"hub_username": name, "delta": 1})
    assert wrong.status_code == 422
    assert "hf_username" in wrong.json()["detail"]


# -- what anonymous callers send --------------------------------------------------------------------------


def test_extra_columns_are_ignored_only_below_the_mount(backend: Backend, token: str) -> None:
    rows = oracle().num_rows
    wide = oracle(**{f"feature{number}": pa.array(np.zeros(rows)) for number in range(40)})
    texts = oracle(names=pa.array(["a track of some name"] * rows), lists=pa.array([[1.0, 2.0]] * rows))
    with backend.http(token) as there:
        for table in (wide, texts):
            answer = there.post("/v1/benchmark/tracking/submit", **sent(table))
            assert answer.status_code == 200, answer.text
            assert answer.json()["scores"]["trackml_eff"] == 1.0
        here = there.post(f"{backend.server.base_url}/v1/benchmark/tracking/submit", **sent(oracle()))
        assert here.status_code == 422
        assert {error["code"] for error in here.json()["errors"]} == {"extra-column"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda table: table.drop_columns(["track_id"]), "missing-column"),
        (lambda table: table.append_column("track_id", table["track_id"]), "repeated-column"),
        (lambda table: table.append_column("track_id.part", table["track_id"]), "extra-column"),
        (
            lambda table: pa.table(
                {**table.to_pydict(), **{f"c{number}": pa.nulls(table.num_rows) for number in range(1000)}}
            ),
            "too-many-columns",
        ),
    ],
    ids=["missing", "twice", "part of another", "too many columns"],
)
def test_predictions_are_validated(caller: httpx.Client, change: Any, code: str) -> None:
    answer = caller.post("/v1/benchmark/tracking/submit", **sent(change(oracle())))
    assert answer.status_code == 422
    assert code in {error["code"] for error in answer.json()["errors"]}
    assert answer.json()["detail"]


@pytest.mark.parametrize("name", ["none", "%00", "..%2Fadmin"])
def test_hostile_names_are_not_found(caller: httpx.Client, name: str) -> None:
    for call in (
        caller.get(f"/v1/requests/{name}"),
        caller.get(f"/v1/leaderboard/{name}"),
        caller.post(f"/v1/benchmark/{name}/submit", **sent(oracle())),
    ):
        assert call.status_code == 404
        assert call.json()["detail"]


def test_scores_of_the_client_are_ignored(caller: httpx.Client) -> None:
    fields = {"local_scores": '{"trackml_eff": NaN, [', "model_repo_id": "ada/model"}
    answer = caller.post("/v1/benchmark/tracking/submit", data=fields, **sent(oracle()))
    assert answer.status_code == 200
    assert answer.json()["scores"]["trackml_eff"] == 1.0
