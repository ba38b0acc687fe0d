"""Backup and restore of a server whose files are in a bucket."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pyarrow as pa
from tests.s3 import USER, S3Server, own_s3, s3_variables
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, files_below, import_truth, parquet, signed_in

__all__ = ["own_s3"]


def test_a_backup_checks_the_files_in_the_bucket(own_s3: S3Server, tmp_path: Path, oracle: pa.Table) -> None:
    variables = s3_variables(own_s3.url, USER)
    with ServerProcess(tmp_path / "one", env=variables) as server:
        import_truth(server)
        with signed_in(server, "ada") as ada:
            assert ada.post(SUBMIT, content=parquet(oracle)).status_code == 200
        assert storage_check(server) == ("ok", "")
        assert server.run("backup", str(tmp_path / "backup")).returncode == 0
        absent = s3_variables(own_s3.url, USER, "s3://absent")
        nowhere = ServerProcess(tmp_path / "nowhere", env=absent)
        refused = nowhere.run("restore", str(tmp_path / "backup"))
        assert "the storage cannot be used: s3://absent: NoSuchBucket" in refused.stderr
        assert files_below(nowhere.data_dir) == []
        restored = ServerProcess(tmp_path / "restored", env=variables)
        done = restored.run("restore", str(tmp_path / "backup"), "--json")
        assert done.returncode == 0, done.stderr
        # A manifest, two tables, inputs, sketches and predictions.
        assert json.loads(done.stdout)["stored_files"] == 6
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
        assert storage_check(server)[0] == "failed"


def storage_check(server: ServerProcess) -> tuple[str, str]:
    """What `collidium doctor` reports about the storage, and its advice."""
    checks = json.loads(server.run("doctor", "--json").stdout)
    (found,) = (check for check in checks if check["name"] == "storage")
    return found["status"], found["advice"]
