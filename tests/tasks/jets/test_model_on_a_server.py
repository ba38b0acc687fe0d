"""A baseline as a model that the server runs: it scores what its own predictions do."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import httpx
import numpy as np
import pytest
from huggingface_hub import HfApi
from tests.sandboxes import allowance

from collidium.client import Client, write_predictions
from collidium.datasets.writing import write_dataset
from collidium.errors import Unavailable
from collidium.testing.server import ServerProcess
from collidium_tasks.jets import JetsTask, examples
from collidium_tasks.networks import graph

from .events import FLAVOURS, tables

EVENTS = 40
TABLES = tables(FLAVOURS * (EVENTS // len(FLAVOURS)), first=0)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events with truth."""
    directory = tmp_path_factory.mktemp("events")
    write_dataset(directory, "ttbar_pu0", [TABLES], events_per_shard=8)
    return directory


@pytest.fixture(scope="module")
def server(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("site"), env=allowance()) as server:
        imported = server.run("truth", "import", "jets", "--from", str(source), "--events", f"0:{EVENTS}")
        assert imported.returncode == 0, imported.stderr
        public = server.run(
            *("truth", "import", "jets", "--from", str(source), "--events", f"0:{EVENTS // 2}"),
            *("--not-current", "--public"),
        )
        assert public.returncode == 0, public.stderr
        yield server


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The files of the baseline `deepsets`."""
    directory = tmp_path_factory.mktemp("model")
    for name, content in examples.deepsets_model().items():
        (directory / name).write_bytes(content)
    return directory / "model.onnx", directory / "manifest.toml"


def test_a_baseline_as_a_model_scores_what_its_predictions_do(
    server: ServerProcess, model: tuple[Path, Path], source: Path, tmp_path: Path
) -> None:
    write_predictions(JetsTask().baselines()["deepsets"](TABLES), tmp_path / "own.parquet")
    token = server.add_user("bea")
    with Client(server.base_url, token=token) as client:
        own = client.submit("jets", tmp_path / "own.parquet")
        sent = client.submit_model("jets", *model)
        assert streamed(server, token, sent.evaluation_id)[-1] == "scored"
        assert streamed(server, server.add_user("cleo"), sent.evaluation_id) == []
        ended = client.wait_for_model(sent.evaluation_id)
        assert (ended.state, ended.code, ended.events_done) == ("scored", None, EVENTS)
        found = client.submission(ended.submission_id or "")
        assert client.submit_model("jets", *model).deduplicated
        assert client.quota("jets").submissions_left == 8
    exact = kept(server, found.submission_id)
    assert exact == pytest.approx(own.scores, abs=1e-6)
    for name, value in exact.items():
        assert abs(found.scores[name] - value) <= own.uncertainties[name] / 10
    output = str(tmp_path / "b.zip")
    command = ("bundle", found.submission_id, "--manifest", str(model[1]), "--output", output)
    assert server.run(*command, "--model", str(model[1])).returncode == 3, "another file"
    done = server.run(*command, "--model", str(model[0]))
    assert done.returncode == 0, done.stderr
    with ZipFile(tmp_path / "b.zip") as bundle:
        assert bundle.read("model.onnx") == model[0].read_bytes()
        assert "collidium model run" in bundle.read("README.md").decode()
    reproduced_at_home(server, output, source, own.scores)
    reproduced_by_the_server(server, token, found.submission_id)
    assert found.model is not None
    assert found.model.graph is not None
    assert found.model.graph.inputs == {"tracks": "features/tracks, float32, flat"}
    assert (found.sha256, found.rows, found.model.sha256) == (sent.model_sha256, None, sent.model_sha256)


def streamed(server: ServerProcess, token: str, evaluation_id: str) -> list[str]:
    """The states that a stream of the evaluation shows until it ends."""
    headers = {"Authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=server.base_url, headers=headers, timeout=60, trust_env=False) as client,
        client.stream("GET", f"/v1/evaluations/{evaluation_id}/progress") as answer,
    ):
        return [json.loads(line[5:])["state"] for line in answer.iter_lines() if line.startswith("data:")]


def reproduced_at_home(
    server: ServerProcess, bundle: str, source: Path, expected: Mapping[str, float]
) -> None:
    again = server.run("model", "reproduce", bundle, "--from", str(source), "--json")
    assert again.returncode == 0, again.stderr
    rows = {row["name"]: row for row in json.loads(again.stdout)["results"]}
    assert rows.keys() == {*expected, "parameters"}
    assert {name: rows[name]["here"] for name in expected} == pytest.approx(expected, abs=1e-6)
    with ZipFile(bundle) as packed, ZipFile(f"{bundle}.forged", "w") as forged:
        sent = json.loads(packed.read("submission.json"))
        sent["scores"]["btag_auc"] = 0.1
        forged.writestr("submission.json", json.dumps(sent))
        for name in ("model.onnx", "manifest.toml"):
            forged.writestr(name, packed.read(name))
    other = server.run("model", "reproduce", f"{bundle}.forged", "--from", str(source))
    assert (other.returncode, "Some results do not agree" in other.stderr) == (1, True), other.stderr
    assert server.run("model", "reproduce", str(source / "README.md"), "--from", str(source)).returncode == 3


def reproduced_by_the_server(server: ServerProcess, token: str, submission_id: str) -> None:
    server.environment["HF_TOKEN"] = token
    asked = server.run("model", "reproduce", submission_id, "--server", "--json")
    assert asked.returncode == 0, asked.stderr
    with Client(server.base_url, token=token) as client:
        assert client.wait_for_model(json.loads(asked.stdout)["evaluation_id"]).public
        assert client.reproduce(submission_id).state == "scored", "the same run"
        made = client.submission(submission_id).reproduction
    assert made is not None
    assert (made.agrees, made.eval_events.stop) == (True, EVENTS // 2)


def kept(server: ServerProcess, submission_id: str) -> dict[str, float]:
    """The scores before they are rounded, which are never shown."""
    with closing(sqlite3.connect(server.data_dir / "collidium.sqlite3")) as database:
        row = database.execute("SELECT scores FROM scorings WHERE submission_id = ?", [submission_id])
        scores: dict[str, float] = json.loads(row.fetchone()[0])
        return scores


def test_a_model_that_crashes_ends_with_its_code(server: ServerProcess, tmp_path: Path) -> None:
    crash = graph(
        "crash (int64[N] jet) => (float[N, 3] p) { low = Min(jet, least) wrong = Div(low, minus) "
        "flat = Cast <to = 1> (wrong) column = Unsqueeze(flat, axis) "
        "p = Concat <axis = 1> (column, column, column) }",
        least=np.array(np.iinfo(np.int64).min),
        minus=np.array(-1),
        axis=np.array([1]),
    )
    (tmp_path / "model.onnx").write_bytes(crash)
    manifest = tmp_path / "manifest.toml"
    manifest.write_text(
        'contract = 1\ntask = "jets"\nbatch = "events"\n'
        '[inputs]\njet = { source = "jets", dtype = "int64", layout = "segment" }\n'
        '[outputs]\np = ["prob_b", "prob_c", "prob_light"]\n'
    )
    token = server.add_user("eve")
    server.environment["HF_TOKEN"] = token
    command = ("submit", "jets", "--model", str(tmp_path / "model.onnx"), "--manifest", str(manifest))
    done = server.run(*command, "--wait", "--json")
    ended = json.loads(done.stdout)
    assert (done.returncode, ended["state"], ended["code"]) == (1, "failed", "crashed")
    with Client(server.base_url, token=token, admin_token=server.admin_token) as client:
        assert client.admin_rerun_evaluation(ended["evaluation_id"]).state == "received"
        again = client.wait_for_model(ended["evaluation_id"])
        assert (again.state, again.code) == ("failed", "crashed")
        assert [one.evaluation_id for one in client.evaluations().items] == [ended["evaluation_id"]]
        entries = client.admin_audit(limit=1).items
        assert [(entry.action, entry.target) for entry in entries] == [
            ("rerun_evaluation", ended["evaluation_id"])
        ]


def test_a_model_of_a_repository_is_submitted(server: ServerProcess, model: tuple[Path, Path]) -> None:
    server.environment["HF_TOKEN"] = token = server.add_user("fay")
    hub, command = HfApi(server.hub_url, token=token), ("submit", "jets", "--json", "--model")
    for source, reason in (("fay tagger", "neither an existing file"), ("fay/tagger", "no model repository")):
        done = server.run(*command, source)
        assert (done.returncode, reason in " ".join(done.stderr.split())) == (3, True), done.stderr
    repo = hub.create_repo("fay/tagger").repo_id
    first = hub.upload_file(path_or_fileobj=model[0], path_in_repo="model.onnx", repo_id=repo)
    hub.upload_file(path_or_fileobj=model[1], path_in_repo="manifest.toml", repo_id=repo)
    early = server.run(*command, f"{repo}@{first.oid}")
    assert (early.returncode, "has no manifest.toml" in " ".join(early.stderr.split())) == (3, True)
    done = server.run(*command, f"{repo}@main")
    sent = json.loads(done.stdout)
    assert sent["model_repo"] == repo
    assert sent["model_sha256"] == sha256(model[0].read_bytes()).hexdigest()


def test_a_server_that_runs_no_models_accepts_none(
    source: Path, model: tuple[Path, Path], tmp_path: Path
) -> None:
    """Neither does it charge the quota; operators see the reason."""
    with ServerProcess(tmp_path, env=allowance() | {"PLATFORM_FOLLOW_REQUESTS": "false"}) as idle:
        imported = idle.run("truth", "import", "jets", "--from", str(source), "--events", f"0:{EVENTS}")
        assert imported.returncode == 0, imported.stderr
        with Client(idle.base_url, token=idle.add_user("dora")) as client:
            with pytest.raises(Unavailable, match="jets runs no models now: no process that runs them"):
                client.submit_model("jets", *model)
            assert client.quota("jets").submissions_left == 10
            assert not client.evaluations().items
        headers = {"X-Admin-Token": idle.admin_token}
        shown = httpx.get(f"{idle.base_url}/admin/overview", headers=headers, trust_env=False).json()
        assert shown["models_not_run"] == "no process that runs them for 30 s"


def test_hostile_uploads_are_refused(server: ServerProcess, model: tuple[Path, Path]) -> None:
    headers = {"Authorization": f"Bearer {server.add_user('mallory')}"}
    address, content = "/v1/benchmark/jets/submit/model", model[0].read_bytes()
    many = "[inputs]\n" + "".join(f'i{n} = {{ source = "truth.x", dtype = "text" }}\n' for n in range(3))
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=60, trust_env=False) as client:
        assert client.post(address, content=content).status_code == 415
        forms: list[tuple[dict[str, bytes], int, set[str]]] = [
            ({}, 422, {"manifest"}),
            ({"manifest": b"\xff"}, 400, set()),
            ({"manifest": b"contract = "}, 422, set()),
            ({"manifest": many.encode()}, 422, {"contract", "task", "outputs", "inputs.i2"}),
            ({"manifest": b"#" * 70_000}, 413, set()),
        ]
        for fields, status, problems in forms:
            files = {"model": ("model.onnx", content), **{name: ("x", text) for name, text in fields.items()}}
            response = client.post(address, files=files)
            assert response.status_code == status, response.text
            assert problems <= {error["field"] for error in response.json().get("errors", [])}
        unknown = client.post("/v1/benchmark/nothing/submit/model", files={"model": content})
        assert unknown.status_code == 404
        assert client.get("/v1/me/evaluations").json() == []
        assert client.get(f"/v1/evaluations/{'0' * 32}").status_code == 404
