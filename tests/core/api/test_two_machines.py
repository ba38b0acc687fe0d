"""A server that shares nothing but database and bucket with the one that imported truth."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pyarrow as pa
from tests.dask_cluster import running
from tests.s3 import USER, S3Server, own_s3, s3_variables
from tests.waiting import eventually

from collidium.testing.databases import migrate, sqlite_url
from collidium.testing.server import ServerProcess

from .conftest import files_below, import_truth, parquet, signed_in

__all__ = ["own_s3"]


def test_an_empty_machine_scores_while_its_store_is_there(
    own_s3: S3Server, tmp_path: Path, oracle: pa.Table
) -> None:
    database = sqlite_url(tmp_path / "shared.sqlite3")
    migrate(database)
    variables = s3_variables(own_s3.url, USER)
    import_truth(ServerProcess(tmp_path / "one", database, variables))
    with (
        ServerProcess(tmp_path / "other", database, variables) as other,
        signed_in(other, "ada") as ada,
    ):
        answer = ada.post("/v1/benchmark/tracking/submit", content=parquet(oracle))
        assert answer.status_code == 200, answer.text
        assert answer.json()["scores"]["trackml_weighted_efficiency"] == 1
        assert any((other.data_dir / "truth" / "tracking").iterdir())
        assert storage_check(other) == ("ok", "")
        own_s3.kill()
        answer = ada.post("/v1/benchmark/tracking/submit", content=parquet(oracle, compression="none"))
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert storage_check(other)[0] == "failed"


def test_a_backup_looks_for_the_files_in_the_store(
    own_s3: S3Server, tmp_path: Path, oracle: pa.Table
) -> None:
    variables = s3_variables(own_s3.url, USER)
    with ServerProcess(tmp_path / "one", env=variables) as server:
        import_truth(server)
        with signed_in(server, "ada") as ada:
            assert ada.post("/v1/benchmark/tracking/submit", content=parquet(oracle)).status_code == 200
        assert server.run("backup", str(tmp_path / "backup")).returncode == 0
        absent = s3_variables(own_s3.url, USER, "s3://absent")
        nowhere = ServerProcess(tmp_path / "nowhere", env=absent)
        refused = nowhere.run("restore", str(tmp_path / "backup"))
        assert "the storage cannot be used: s3://absent: NoSuchBucket" in refused.stderr
        assert files_below(nowhere.data_dir) == []
        restored = ServerProcess(tmp_path / "restored", env=variables)
        done = restored.run("restore", str(tmp_path / "backup"), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["stored_files"] == 5, "a manifest, two tables, inputs, predictions"
        client = own_s3.client()
        (found,) = client.list_objects_v2(Bucket="files", Prefix="predictions/")["Contents"]
        client.delete_object(Bucket="files", Key=found["Key"])
        lost = server.run("backup", str(tmp_path / "later"), "--json")
        assert lost.returncode == 1
        assert json.loads(lost.stdout)["missing"] == [found["Key"]]
        own_s3.kill()
        eventually(lambda: httpx.get(f"{server.base_url}/readyz", trust_env=False).status_code == 503)
        state = httpx.get(f"{server.base_url}/readyz", trust_env=False).json()
        assert (state["database"], state["storage"]) == ("ok", "away")


def test_a_worker_elsewhere_scores_what_a_server_receives(
    own_s3: S3Server, tmp_path: Path, oracle: pa.Table
) -> None:
    """They have the bucket alone in common, which keeps no copy of what was received."""
    database = sqlite_url(tmp_path / "server.sqlite3")
    migrate(database)
    store = s3_variables(own_s3.url, USER)
    import_truth(ServerProcess(tmp_path / "importing", database, store))
    with (
        running(tmp_path / "cluster", 1, store) as cluster,
        ServerProcess(
            tmp_path / "server",
            database,
            {**store, **cluster.variables(), "PLATFORM_DASK_WAIT_SECONDS": "30"},
        ) as server,
        signed_in(server, "ada") as ada,
    ):
        answer = ada.post("/v1/benchmark/tracking/submit", content=parquet(oracle))
        assert answer.status_code == 200, answer.text
        assert answer.json()["scores"]["trackml_weighted_efficiency"] == 1
        fetched = list((tmp_path / "cluster" / "worker-1").glob("dask/**/files/*"))
        assert len(fetched) == 3  # two tables of truth, and the predictions
        assert "Contents" not in own_s3.client().list_objects_v2(Bucket="files", Prefix="uploads/")


def storage_check(server: ServerProcess) -> tuple[str, str]:
    """What `collidium doctor` says of the storage, and what to do."""
    checks = json.loads(server.run("doctor", "--json").stdout)
    (found,) = (check for check in checks if check["name"] == "storage")
    return found["status"], found["advice"]
